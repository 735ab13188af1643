package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"usher/booking"
)

// Summary tells what an apply did, in order.
type Summary struct {
	Changes   []Change
	Unchanged int // rooms, venues, events and showtimes that were so already
}

// Change is one thing an apply did, or left alone with a reason.
type Change struct {
	Action string `json:"action"` // created, changed, left
	Kind   string `json:"kind"`   // room, venue, layout, event, showtime
	ID     string `json:"id"`
	Detail string `json:"detail,omitempty"`
}

// Changed tells whether anything is different from before.
func (s Summary) Changed() bool {
	return slices.ContainsFunc(s.Changes, func(c Change) bool { return c.Action != "left" })
}

func (s Summary) String() string {
	var b strings.Builder
	for _, c := range s.Changes {
		fmt.Fprintf(&b, "%s %s %s", c.Action, c.Kind, c.ID)
		if c.Detail != "" {
			b.WriteString(": " + c.Detail)
		}
		b.WriteByte('\n')
	}
	if !s.Changed() {
		b.WriteString("nothing changed\n")
	}
	return b.String()
}

// Apply makes the database sell what the file says, in one transaction, and writes
// who did it to the audit log if anything changed. The error is Faults when the
// database's state forbids it; then nothing has changed.
func Apply(ctx context.Context, pool *pgxpool.Pool, f File, actor string) (Summary, error) {
	return run(ctx, pool, f, actor, true)
}

// Plan tells what Apply would do now, and changes nothing. It takes the same locks
// while it looks, for a moment.
func Plan(ctx context.Context, pool *pgxpool.Pool, f File) (Summary, error) {
	return run(ctx, pool, f, "", false)
}

var errPlanned = errors.New("catalog: only planned")

func run(ctx context.Context, pool *pgxpool.Pool, f File, actor string, keep bool) (Summary, error) {
	var a applier
	err := booking.InTx(ctx, pool, func(tx pgx.Tx) error {
		a = applier{ctx: ctx, tx: tx, file: f, created: map[string]bool{}}
		if err := a.all(); err != nil {
			return err
		}
		if !keep {
			return errPlanned
		}
		return a.audit(actor)
	})
	if err == nil || errors.Is(err, errPlanned) {
		return a.summary, nil
	}
	if faults := (Faults)(nil); errors.As(err, &faults) {
		return Summary{}, faults
	}
	return Summary{}, fmt.Errorf("catalog: apply %s: %w", f.Name, err)
}

// applier is one apply in its transaction.
type applier struct {
	ctx     context.Context //nolint:containedctx // lives as long as the transaction
	tx      pgx.Tx
	file    File
	summary Summary
	created map[string]bool // rooms this apply has made
	faults  Faults
}

// applyLock: two applies at once would each see half of the other's layouts.
const applyLock = 7_305_911_203

// all locks what others wait for as late as it can: rooms, which an operator pauses
// and every session refers to, after everything else; showtimes by id, the order in
// which those who lock seats of several go.
func (a *applier) all() error {
	if _, err := a.tx.Exec(a.ctx, sqlApplyLock, applyLock); err != nil {
		return err
	}
	for _, r := range a.file.Rooms {
		if err := a.createRoom(r); err != nil {
			return fmt.Errorf("room %s: %w", r.ID, err)
		}
	}
	for _, v := range a.file.Venues {
		if err := a.venue(v); err != nil {
			return fmt.Errorf("venue %s: %w", v.ID, err)
		}
	}
	for _, e := range a.file.Events {
		if err := a.event(e); err != nil {
			return fmt.Errorf("event %s: %w", e.ID, err)
		}
	}
	if err := a.showtimes(); err != nil {
		return err
	}
	if len(a.faults) > 0 {
		return a.faults.sorted()
	}
	rest := a.summary.Changes
	a.summary.Changes = nil
	for _, r := range a.file.Rooms {
		if err := a.changeRoom(r); err != nil {
			return fmt.Errorf("room %s: %w", r.ID, err)
		}
	}
	a.summary.Changes = append(a.summary.Changes, rest...) // rooms are told of first
	return nil
}

func (a *applier) audit(actor string) error {
	if !a.summary.Changed() {
		return nil
	}
	_, err := a.tx.Exec(a.ctx, sqlAudit,
		actor, "file:"+a.file.Name, map[string]any{"digest": a.file.Digest, "changes": a.summary.Changes})
	return err
}

func (a *applier) note(action, kind, id, format string, args ...any) {
	a.summary.Changes = append(a.summary.Changes, Change{action, kind, id, fmt.Sprintf(format, args...)})
}

func (a *applier) refuse(line int, path, format string, args ...any) {
	a.faults = append(a.faults, Fault{File: a.file.Name, Line: line, Path: path, Message: fmt.Sprintf(format, args...)})
}

// differences lists, for the summary, what is unlike; each triple is a name, the old and the new value.
func differences(triples ...any) string {
	var out []string
	for i := 0; i+2 < len(triples); i += 3 {
		if was, is := fmt.Sprint(triples[i+1]), fmt.Sprint(triples[i+2]); was != is {
			out = append(out, fmt.Sprintf("%s %s → %s", triples[i], orNone(was), orNone(is)))
		}
	}
	return strings.Join(out, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
