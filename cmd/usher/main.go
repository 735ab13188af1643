// Usher: a virtual waiting room and a box office. One binary; the subcommand is
// the role.
//
// main turns flags, environment and signals into values and calls one function
// of package app; nothing below it knows signals or flags.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Dev     devCmd     `cmd:"" help:"Run everything on this machine: private Postgres and Redis, sandbox payments, demos on sale."`
	Edge    edgeCmd    `cmd:"" help:"Run the waiting rooms."`
	Booking bookingCmd `cmd:"" help:"Run the box office and the bridge."`
	Sandbox sandboxCmd `cmd:"" help:"Run the sandbox payment provider."`
	Migrate migrateCmd `cmd:"" help:"Apply or list the database's migrations."`
	Event   eventCmd   `cmd:"" help:"Import and list what is on sale."`
	Room    roomCmd    `cmd:"" help:"Open, pause, tune and close waiting rooms, through the admin listener."`
	Keys    keysCmd    `cmd:"" help:"Make, rotate and list the keys that sign passes."`
	Audit   auditCmd   `cmd:"" help:"Check every invariant against the database; exits non-zero on a breach."`
	Health  healthCmd  `cmd:"" help:"Ask a process on this machine whether it is ready; exits non-zero when not."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// world is what a command sees of the outside.
type world struct {
	ctx     context.Context
	out     io.Writer
	environ []string
	command string // how this program was called
	log     *slog.Logger
	level   *slog.LevelVar
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process: it returns the exit code, 0 for success, 1
// for a failure, 2 for a command line that makes no sense.
func run(args []string, out, errs io.Writer) int {
	var c cli
	parser, err := kong.New(&c, kong.Name("usher"), kong.Writers(out, errs), kong.UsageOnError(),
		kong.Description("A virtual waiting room and a box office."))
	if err != nil {
		panic(err) // a programmer's mistake in the tags above
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		_, _ = fmt.Fprintf(errs, "usher: %v\n", err)
		return 2
	}
	// The second signal finds the default handler again and ends us at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	level := &slog.LevelVar{}
	w := &world{ctx: ctx, out: out, environ: os.Environ(), command: os.Args[0], level: level,
		log: slog.New(slog.NewJSONHandler(errs, &slog.HandlerOptions{Level: level}))}
	slog.SetDefault(w.log)
	if err := parsed.Run(w); err != nil {
		_, _ = fmt.Fprintf(errs, "usher: %v\n", err)
		return 1
	}
	return 0
}
