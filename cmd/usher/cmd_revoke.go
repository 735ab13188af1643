package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

type roomRevokeCmd struct {
	roomArg
	Customer  []string `sep:"none" placeholder:"ID" help:"A customer's id; may be given more than once."`
	Place     []string `sep:"none" placeholder:"ID" help:"A place's id, 32 hex digits; may be given more than once."`
	Pass      []string `sep:"none" placeholder:"ID" help:"A pass' id (jti); may be given more than once."`
	File      string   `short:"f" type:"existingfile" help:"A file of ids, one a line: customer:ID, place:ID or pass:ID; a bare ID is a customer's."`
	Everybody bool     `help:"All whose pass was granted before --before; those in line keep their places."`
	Before    string   `default:"now" placeholder:"INSTANT" help:"With --everybody: an instant like 2026-07-27T19:00:00Z (default ${default})."`
	Reason    string   `required:"" help:"Why; the audit log keeps it."`
}

type roomLiftCmd struct {
	roomArg
	ID string `arg:"" help:"The revocation's id, of usher room revocations."`
}

type roomRevocationsCmd struct{ roomArg }

type revokeDoc struct {
	RevocationID              string
	Customers, Places, Passes int
	Everybody, Pushed         bool
}

func (c roomRevokeCmd) Run(w *world, p *roomCmd) error {
	body := map[string]any{"customers": c.Customer, "places": c.Place, "passes": c.Pass, "reason": c.Reason}
	if c.File != "" {
		if err := readSubjects(c.File, body); err != nil {
			return err
		}
	}
	switch {
	case c.Everybody:
		body["everybodyBefore"] = c.Before
	case c.Before != "now":
		return errors.New("--before goes with --everybody")
	}
	var done revokeDoc
	if err := p.call(w, http.MethodPost, revocationsPath(c.Room), body, &done); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w.out, "Revoked in %s: %d customers, %d places, %d passes, everybody: %v  (id %s)\n",
		c.Room, done.Customers, done.Places, done.Passes, done.Everybody, done.RevocationID)
	if err == nil && !done.Pushed {
		_, err = fmt.Fprintln(w.out, "The box office obeys; Redis could not be told: the line learns it by the bridge's next turn that reaches Redis.")
	}
	return err
}

// readSubjects adds a file's ids to the body's lists.
func readSubjects(name string, body map[string]any) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lists := map[string]string{"customer": "customers", "place": "places", "pass": "passes"}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		list := "customers"
		if kind, id, ok := strings.Cut(line, ":"); ok && lists[kind] != "" {
			list, line = lists[kind], id
		}
		ids, _ := body[list].([]string)
		body[list] = append(ids, line)
	}
	return lines.Err()
}

func (c roomLiftCmd) Run(w *world, p *roomCmd) error {
	if err := p.call(w, http.MethodDelete, revocationsPath(c.Room)+"/"+url.PathEscape(c.ID), nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w.out, "Lifted in %s: %s\n", c.Room, c.ID)
	return err
}

func (c roomRevocationsCmd) Run(w *world, p *roomCmd) error {
	var all struct {
		Revocations []struct {
			RevocationID, Actor, Reason, CreatedAt string
			LiftedAt, EverybodyBefore              *string
			LiftedBy                               string
			Customers, Places, Passes              int
		}
	}
	if err := p.call(w, http.MethodGet, revocationsPath(c.Room), nil, &all); err != nil {
		return err
	}
	for _, r := range all.Revocations {
		state := "in force"
		if r.LiftedAt != nil {
			state = "lifted " + *r.LiftedAt + " by " + r.LiftedBy
		}
		before := ""
		if r.EverybodyBefore != nil {
			before = ", everybody before " + *r.EverybodyBefore
		}
		if _, err := fmt.Fprintf(w.out, "%s  %s  %s: %d customers, %d places, %d passes%s  (%q, %s)\n",
			r.RevocationID, r.CreatedAt, r.Actor, r.Customers, r.Places, r.Passes, before, r.Reason, state); err != nil {
			return err
		}
	}
	return nil
}

func revocationsPath(room string) string {
	return "/v1/admin/rooms/" + url.PathEscape(room) + "/revocations"
}
