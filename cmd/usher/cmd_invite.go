package main

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

type roomInviteCmd struct {
	roomArg
	Quota   int           `required:"" placeholder:"N" help:"How many fans may come by it."`
	Expires time.Duration `default:"24h" help:"How long it is good (default ${default})."`
	Kind    string        `enum:"bypass,priority" default:"bypass" help:"bypass: ahead of the line; priority: in the line beside it, which has a share of the calls (usher room priority-share). Both are within the room's cap and rate."`
}

type roomInvitesCmd struct{ roomArg }

type inviteDoc struct {
	InviteID, ExpiresAt, CreatedAt, Actor, URL, Kind string
	Quota                                            int
}

func invitesPath(room string) string { return "/v1/admin/rooms/" + url.PathEscape(room) + "/invites" }

func (c roomInviteCmd) Run(w *world, p *roomCmd) error {
	var made inviteDoc
	body := map[string]any{"kind": c.Kind, "quota": c.Quota, "expiresInSeconds": int64(c.Expires / time.Second)}
	if err := p.call(w, http.MethodPost, invitesPath(c.Room), body, &made); err != nil {
		return err
	}
	where := "ahead of the line"
	if made.Kind == "priority" {
		where = "in the priority line"
	}
	_, err := fmt.Fprintf(w.out, "%s\n%d places %s of %s, until %s. It is shown once; whoever has it can use it.\n",
		made.URL, made.Quota, where, c.Room, made.ExpiresAt)
	return err
}

func (c roomInvitesCmd) Run(w *world, p *roomCmd) error {
	var all struct{ Invites []inviteDoc }
	if err := p.call(w, http.MethodGet, invitesPath(c.Room), nil, &all); err != nil {
		return err
	}
	for _, i := range all.Invites {
		if _, err := fmt.Fprintf(w.out, "%s  made %s by %s: %d places until %s (%s)\n", i.InviteID, i.CreatedAt, i.Actor, i.Quota, i.ExpiresAt, i.Kind); err != nil {
			return err
		}
	}
	return nil
}
