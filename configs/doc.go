// Package configs is Usher's configuration: one struct, its defaults, and the
// rules a value must keep. It is read by cmd/usher alone; every other package
// takes an Options struct of its own.
//
// A value comes, the later the stronger, from the defaults, a YAML file, the
// environment (USHER_EDGE_ADDR is edge.addr) and overrides (flags). Secrets may
// stand in files of their own: wherever a key holds one, the same key with
// "File" behind it names a file instead.
//
// Decisions. Unknown keys are errors, in the file and in the environment: a
// misspelt key that is ignored is found on the night of the sale. Every problem
// is reported at once, each with its key and its line. A secret prints as
// "[redacted]" by whatever road it is printed. A changed file is read, checked
// whole and swapped in one step; one with a problem is refused and the old
// configuration stays. Files are compared by content every few seconds and not
// watched by inode: mounted secrets and editors replace files, and a watch on
// the old inode never fires again.
package configs
