package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"runtime/debug"
	"time"

	"usher/admission/pass"
	"usher/cmd/usher/internal/app"
)

type keysCmd struct {
	New    keysNewCmd    `cmd:"" help:"Make a key: the first of a new file, or one more that is published now and signs after --publish-first."`
	Rotate keysRotateCmd `cmd:"" help:"Let the newest key, or a new one, sign once it has been published for --publish-first; the others stay published until their last pass has expired."`
	List   keysListCmd   `cmd:"" help:"List the keys."`
}

type keysFlag struct {
	File string `short:"f" env:"USHER_PASS_KEYS_FILE" default:"pass-keys.json" placeholder:"FILE" help:"The key file (default ${default})."`
}

// read is the ring in the file; ok is false when there is no file.
func (f keysFlag) read() (ring pass.Ring, ok bool, err error) {
	data, err := os.ReadFile(f.File)
	if errors.Is(err, fs.ErrNotExist) {
		return pass.Ring{}, false, nil
	}
	if err != nil {
		return pass.Ring{}, false, err
	}
	if ring, err = pass.ParseRing(data); err != nil {
		return pass.Ring{}, false, fmt.Errorf("%s: %w", f.File, err)
	}
	return ring, true, nil
}

func (f keysFlag) mustRead() (pass.Ring, error) {
	ring, ok, err := f.read()
	if err == nil && !ok {
		err = fmt.Errorf("there is no %s; make it with: usher keys new", f.File)
	}
	return ring, err
}

type keysNewCmd struct {
	keysFlag
	IfMissing    bool          `help:"Do nothing when the file is there."`
	PublishFirst time.Duration `default:"10m" help:"How long an additional key is published before it signs (default ${default})."`
}

func (c keysNewCmd) Run(w *world) error {
	now := time.Now()
	ring, exists, err := c.read()
	switch {
	case err != nil:
		return err
	case exists && c.IfMissing:
		return nil
	case exists:
		ring, err = ring.Add(now, now.Add(c.PublishFirst))
	default:
		ring, err = pass.NewRing(now)
	}
	if err != nil {
		return err
	}
	return c.write(w, ring)
}

type keysRotateCmd struct {
	keysFlag
	PublishFirst time.Duration `default:"90s" help:"How long a key is published before it signs: every verifier must have it, and may keep the published set for a minute. One published so long already signs at once (default ${default})."`
	Overlap      time.Duration `default:"15m" help:"How long the old keys stay published after that (default ${default})."`
}

func (c keysRotateCmd) Run(w *world) error {
	if least := pass.Life + pass.Leeway; c.Overlap <= least {
		return fmt.Errorf("--overlap must exceed a pass' life (%s), or passes that are under way die", least)
	}
	if c.PublishFirst < 0 {
		return fmt.Errorf("--publish-first must not be negative: %s", c.PublishFirst)
	}
	ring, err := c.mustRead()
	if err != nil {
		return err
	}
	// A fresh key's turn lies ahead: edges and verifiers read the file, or fetch
	// the published set, each at a moment of its own, and a pass of a key that one
	// of them does not know yet is a fan turned away.
	if ring, err = ring.Rotate(time.Now(), c.PublishFirst, c.Overlap); err != nil {
		return err
	}
	return c.write(w, ring)
}

type keysListCmd struct{ keysFlag }

func (c keysListCmd) Run(w *world) error {
	ring, err := c.mustRead()
	if err != nil {
		return err
	}
	printKeys(w, ring)
	return nil
}

func (f keysFlag) write(w *world, ring pass.Ring) error {
	if err := app.WriteRing(f.File, ring); err != nil {
		return err
	}
	printKeys(w, ring)
	return nil
}

func printKeys(w *world, ring pass.Ring) {
	now := time.Now()
	signer, _ := ring.Signer(now)
	for _, k := range ring.Keys() {
		state := "published"
		switch {
		case k.ID == signer.ID:
			state = "signing"
		case !k.RetireAt.IsZero() && !k.RetireAt.After(now):
			state = "retired"
		case k.ActiveFrom.After(now):
			state = "signs from " + k.ActiveFrom.UTC().Format(time.RFC3339)
		}
		if k.RetireAt.After(now) {
			state += ", published until " + k.RetireAt.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(w.out, "%s  %s\n", k.ID, state)
	}
}

type versionCmd struct{}

func (versionCmd) Run(w *world) error {
	version, revision := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
		version += revision + " " + info.GoVersion
	}
	_, err := fmt.Fprintln(w.out, "usher", version)
	return err
}

// currentUser names who ran a command, for the audit log.
func currentUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}
