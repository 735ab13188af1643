package configs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
)

// Source says where a configuration comes from.
type Source struct {
	Base      map[string]any // by key; weaker than the file, stronger than the defaults
	File      string         // YAML; "" for none
	Environ   []string       // as os.Environ gives it
	Overrides map[string]any // by key; flags
	Role      string         // whose needs are checked: a role of the table, "dev" or "" (rules only)
}

// foreignEnv are variables that begin with USHER_ and are not keys: what the
// command line reads by itself.
var foreignEnv = map[string]bool{
	"USHER_CONFIG": true, "USHER_DATA": true, "USHER_ADMIN_URL": true, "USHER_OPERATOR_TOKEN": true,
}

// Load reads, merges and checks a configuration. The error is a *Problems that
// lists everything wrong with it at once; no Config comes with it.
func Load(src Source) (*Config, error) {
	c, _, err := load(src)
	return c, err
}

// load also returns a digest of every file it read, by which Watch knows that
// something changed.
func load(src Source) (*Config, string, error) {
	l := &loader{src: src, cfg: Default(), lines: map[string]int{}, digest: sha256.New()}
	l.fields = fieldsOf(&l.cfg)
	k := l.merge()
	if k != nil {
		l.decode(k)
		l.check()
	}
	digest := hex.EncodeToString(l.digest.Sum(nil))
	if len(l.problems.list) > 0 {
		l.problems.sort()
		return nil, digest, &l.problems
	}
	return &l.cfg, digest, nil
}

type loader struct {
	src      Source
	cfg      Config
	fields   []field
	lines    map[string]int // key → line in the file
	problems Problems
	digest   interface {
		Write([]byte) (int, error)
		Sum([]byte) []byte
	}
}

func (l *loader) add(key, format string, args ...any) {
	line := l.lines[key]
	if line == 0 {
		line = l.lines[key+"File"] // what is in the file that it names
	}
	l.problems.list = append(l.problems.list, Problem{Key: key, Line: line, Text: fmt.Sprintf(format, args...)})
}

// check runs the rules, but not on a key that has a problem already: about a
// value that was never read they would only repeat the fault.
func (l *loader) check() {
	faulty := map[string]bool{}
	for _, p := range l.problems.list {
		faulty[p.Key] = true
	}
	l.cfg.check(l.src.Role, func(key, format string, args ...any) {
		if !faulty[key] && !faulty[key+"File"] {
			l.add(key, format, args...)
		}
	})
}

// merge lays environment and overrides over the file; nil when the file cannot
// be read at all.
func (l *loader) merge() *koanf.Koanf {
	k := koanf.New(".")
	if err := k.Load(confmap.Provider(l.src.Base, "."), nil); err != nil {
		l.add("", "%v", err)
	}
	if l.src.File != "" {
		data, err := os.ReadFile(l.src.File)
		if err != nil {
			l.add("", "%v", err)
			return nil
		}
		_, _ = l.digest.Write(data)
		if l.problems.list = append(l.problems.list, readLines(data, l.lines)...); len(l.problems.list) > 0 {
			return nil
		}
		if err := k.Load(rawbytes.Provider(data), yaml.Parser()); err != nil {
			l.add("", "%v", err)
			return nil
		}
	}
	keys := map[string]string{}
	for _, f := range l.fields {
		keys[envName(f.key)] = f.key
		if f.file {
			keys[envName(f.key+"File")] = f.key + "File"
		}
	}
	provider := env.Provider(".", env.Opt{Prefix: "USHER_", EnvironFunc: func() []string { return l.src.Environ },
		TransformFunc: func(name, value string) (string, any) {
			key, known := keys[name]
			if !known && !foreignEnv[name] {
				l.add(name, "is not a setting%s", suggest(name, sortedKeys(keys)))
			}
			return key, value
		}})
	if err := k.Load(provider, nil); err != nil {
		l.add("", "environment: %v", err)
	}
	if err := k.Load(confmap.Provider(l.src.Overrides, "."), nil); err != nil {
		l.add("", "%v", err)
	}
	return k
}

// decode moves what k holds into the Config and reports what is left over.
func (l *loader) decode(k *koanf.Koanf) {
	known := map[string]bool{}
	var names []string
	for _, f := range l.fields {
		known[f.key] = true
		names = append(names, f.key)
		if f.file {
			known[f.key+"File"] = true
			names = append(names, f.key+"File")
		}
		inline := k.Exists(f.key)
		if inline {
			if err := f.set(k.Get(f.key)); err != nil {
				l.add(f.key, "%v", err)
			} else if f.path && f.value.String() != "" {
				f.value.SetString(l.beside(f.value.String()))
			} else if rooms, ok := f.value.Interface().(map[string]Customers); ok {
				l.readCustomers(f.key, rooms)
			}
		}
		if f.file && k.Exists(f.key+"File") {
			l.setFromFile(f, k.Get(f.key+"File"), inline)
		}
	}
	reported := map[string]bool{}
	for _, key := range append(k.Keys(), sortedKeys(l.lines)...) {
		if !belongs(key, known) && !reported[key] {
			reported[key] = true
			l.add(key, "is not a setting%s", suggest(key, names))
		}
	}
}

// belongs is true for a known key, for what is below one (a room's origins),
// and for the groups above one.
func belongs(key string, known map[string]bool) bool {
	for at := key; ; {
		if known[at] {
			return true
		}
		i := strings.LastIndexByte(at, '.')
		if i < 0 {
			break
		}
		at = at[:i]
	}
	for k := range known {
		if strings.HasPrefix(k, key+".") {
			return true
		}
	}
	return false
}

// setFromFile fills a secret from the file that its …File key names: for a list
// one entry a line, blank lines and those beginning with # left out.
func (l *loader) setFromFile(f field, raw any, inline bool) {
	key := f.key + "File"
	path, ok := raw.(string)
	switch {
	case !ok:
		l.add(key, "must be a file's name, not %s", kindOf(raw))
		return
	case inline:
		l.add(key, "is set, and so is %s; one of them must go", f.key)
		return
	}
	data, err := os.ReadFile(l.beside(path))
	if err != nil {
		l.add(key, "%v", err)
		return
	}
	_, _ = l.digest.Write(data)
	if f.value.Kind() != reflect.Slice {
		f.value.SetString(strings.TrimSpace(string(data)))
		return
	}
	if err := f.setLines(linesOf(data)); err != nil {
		l.add(key, "%v", err)
	}
}

// linesOf are a file's lines, without blank ones and those beginning with #.
func linesOf(data []byte) []string {
	var lines []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// beside makes a relative name relative to the configuration file's folder.
func (l *loader) beside(path string) string {
	if filepath.IsAbs(path) || l.src.File == "" {
		return path
	}
	return filepath.Join(filepath.Dir(l.src.File), path)
}

// Changed lists the keys whose values differ, those a reload cannot change
// apart from those it can.
func Changed(a, b *Config) (live, restart []string) {
	fa, fb := fieldsOf(a), fieldsOf(b)
	for i := range fa {
		if reflect.DeepEqual(fa[i].value.Interface(), fb[i].value.Interface()) {
			continue
		}
		if fa[i].live {
			live = append(live, fa[i].key)
		} else {
			restart = append(restart, fa[i].key)
		}
	}
	sort.Strings(live)
	sort.Strings(restart)
	return live, restart
}
