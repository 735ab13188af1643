package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"usher/cmd/usher/internal/app"
)

type roomCmd struct {
	Admin string `env:"USHER_ADMIN_URL" default:"http://127.0.0.1:9090" placeholder:"URL" help:"The admin listener of a booking process (default ${default})."`
	Token string `env:"USHER_OPERATOR_TOKEN" placeholder:"TOKEN" help:"Operator token; not needed beside a usher dev of the same user."`

	Gather roomGatherCmd `cmd:"" help:"Take places before the opening; nobody is called yet."`
	Draw   roomDrawCmd   `cmd:"" help:"Draw the order of those who gathered; the room opens by itself after that."`
	Open   roomOpenCmd   `cmd:"" help:"Let fans in."`
	Pause  roomPauseCmd  `cmd:"" help:"Keep the line, let nobody in."`
	Resume roomResumeCmd `cmd:"" help:"Go on after a pause."`
	Close  roomCloseCmd  `cmd:"" help:"Take nobody any more."`
	Rate   roomRateCmd   `cmd:"" help:"Most admissions a minute: usher room rate 300 cinema."`
	Cap    roomCapCmd    `cmd:"" help:"Most fans inside at once: usher room cap 150 cinema."`
	Valve  roomValveCmd  `cmd:"" help:"Whether rate and cap are fixed, or the most an adaptive valve may open to: usher room valve cinema adaptive."`
	Status roomStatusCmd `cmd:"" help:"Show one room with its line, or all."`

	PriorityShare roomShareCmd `cmd:"" help:"Percent of the calls that go to the priority line while both lines wait: usher room priority-share 30 cinema. 0: it is served only when nobody else waits."`

	Revoke      roomRevokeCmd      `cmd:"" help:"Refuse fans, places, passes, or everybody admitted before an instant."`
	Revocations roomRevocationsCmd `cmd:"" help:"List who was revoked, by whom and why."`
	Invite      roomInviteCmd      `cmd:"" help:"Make a link for N fans who come in ahead of the line, or by the priority line."`
	Invites     roomInvitesCmd     `cmd:"" help:"List the links that were made."`
	Lift        roomLiftCmd        `cmd:"" help:"Take a revocation back."`
	VerifyDraw  verifyDrawCmd      `cmd:"" help:"Check a draw from what the edge publishes; exits non-zero when anything does not fit."`
}

type roomArg struct {
	Room string `arg:"" help:"The room's id."`
}

type (
	roomGatherCmd struct{ roomArg }
	roomDrawCmd   struct{ roomArg }
	roomOpenCmd   struct{ roomArg }
	roomPauseCmd  struct{ roomArg }
	roomResumeCmd struct{ roomArg }
	roomCloseCmd  struct{ roomArg }
)

// tuneArgs take the number and the room in either order: both are natural, and
// the wrong one would be found on a busy night.
type tuneArgs struct {
	N    string `arg:"" help:"The number."`
	Room string `arg:"" help:"The room's id."`
}

func (a tuneArgs) read() (n int, room string, err error) {
	for _, p := range [][2]string{{a.N, a.Room}, {a.Room, a.N}} {
		if n, err = strconv.Atoi(p[0]); err == nil {
			return n, p[1], nil
		}
	}
	return 0, "", fmt.Errorf("neither %q nor %q is a number", a.N, a.Room)
}

type (
	roomRateCmd  struct{ tuneArgs }
	roomCapCmd   struct{ tuneArgs }
	roomShareCmd struct{ tuneArgs }
)

type roomValveCmd struct {
	roomArg
	Mode string `arg:"" enum:"fixed,adaptive" help:"fixed or adaptive."`
}

type roomStatusCmd struct {
	Room string `arg:"" optional:"" help:"The room's id; all rooms without one."`
}

func (c *roomCmd) verb(w *world, room, verb string) error {
	return c.one(w, http.MethodPost, "/v1/admin/rooms/"+url.PathEscape(room)+"/"+verb, nil)
}

func (c *roomCmd) tune(w *world, field string, args tuneArgs) error {
	n, room, err := args.read()
	if err != nil {
		return err
	}
	return c.one(w, http.MethodPatch, "/v1/admin/rooms/"+url.PathEscape(room), map[string]int{field: n})
}

type roomDoc struct {
	Room, Title, Mode, State string
	RatePerMinute, Cap       int
	PriorityShare            int
	Version                  int64
	Pushed                   *bool // of a change only
	Line                     *struct{ Waiting, Priority, Called, StandingBy, Inside int }
	Valve                    struct {
		Mode, Reason string
		Rate, Cap    *int // in force; absent when Redis does not answer
	}
}

func (c *roomCmd) one(w *world, method, path string, body any) error {
	var r roomDoc
	if err := c.call(w, method, path, body, &r); err != nil {
		return err
	}
	if err := printRooms(w.out, []roomDoc{r}); err != nil || r.Pushed == nil || *r.Pushed {
		return err
	}
	_, err := fmt.Fprintln(w.out, "It is written down, but Redis could not be told: the edges learn it by the bridge's next turn that reaches Redis.")
	return err
}

func (c *roomCmd) status(w *world, room string) error {
	if room != "" {
		return c.one(w, http.MethodGet, "/v1/admin/rooms/"+url.PathEscape(room), nil)
	}
	var all struct{ Rooms []roomDoc }
	if err := c.call(w, http.MethodGet, "/v1/admin/rooms", nil, &all); err != nil {
		return err
	}
	return printRooms(w.out, all.Rooms)
}

func printRooms(out io.Writer, rooms []roomDoc) error {
	for _, r := range rooms {
		if _, err := fmt.Fprintf(out, "%-16s %-9s %s  %d a minute, at most %d inside  (version %d)\n",
			r.Room, r.State, r.Mode, r.RatePerMinute, r.Cap, r.Version); err != nil {
			return err
		}
		if err := printLine(out, r); err != nil {
			return err
		}
	}
	return nil
}

// printLine tells what the line says, when it was asked and Redis answered.
func printLine(out io.Writer, r roomDoc) error {
	if r.Line == nil {
		return nil
	}
	priority := ""
	if r.Line.Priority > 0 {
		priority = fmt.Sprintf(" (%d in the priority line, with %d %% of the calls)", r.Line.Priority, r.PriorityShare)
	}
	if _, err := fmt.Fprintf(out, "  line: %d waiting%s, %d called (%d standing by), %d inside\n",
		r.Line.Waiting, priority, r.Line.Called, r.Line.StandingBy, r.Line.Inside); err != nil || r.Valve.Rate == nil || r.Valve.Cap == nil {
		return err
	}
	_, err := fmt.Fprintf(out, "  valve: %s, now %d of %d a minute, %d of %d inside (%s)\n",
		r.Valve.Mode, *r.Valve.Rate, r.RatePerMinute, *r.Valve.Cap, r.Cap, r.Valve.Reason)
	return err
}

// call speaks to the admin listener; a problem answer becomes the error.
func (c *roomCmd) call(w *world, method, path string, in, out any) error {
	base, err := url.Parse(c.Admin)
	if err != nil || base.Host == "" {
		return fmt.Errorf("--admin must be an address such as http://127.0.0.1:9090, not %q", c.Admin)
	}
	token := c.Token
	if token == "" {
		// The token is found by the port alone; another machine must not be told it.
		if !loopback(base.Hostname()) {
			return fmt.Errorf("no token: set USHER_OPERATOR_TOKEN or --token; the token of a usher dev goes to this machine only, not to %s", base.Hostname())
		}
		if token, err = app.RememberedToken(base.Host); err != nil {
			return err
		}
	}
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.Admin, "/")+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("nobody answers at %s: %w", c.Admin, err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		var p struct{ Title, Detail string }
		if json.Unmarshal(data, &p) != nil || p.Title == "" {
			return fmt.Errorf("%s answered %s", c.Admin, res.Status)
		}
		return fmt.Errorf("%s. %s", p.Title, p.Detail)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

// loopback tells whether a host is this machine. A name other than localhost is
// not: who answers to it is up to somebody else.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// Kong hands a command its parent by type: the flags of `usher room` are there.

func (c roomGatherCmd) Run(w *world, p *roomCmd) error { return p.verb(w, c.Room, "gather") }
func (c roomDrawCmd) Run(w *world, p *roomCmd) error   { return p.verb(w, c.Room, "draw") }
func (c roomOpenCmd) Run(w *world, p *roomCmd) error   { return p.verb(w, c.Room, "open") }
func (c roomPauseCmd) Run(w *world, p *roomCmd) error  { return p.verb(w, c.Room, "pause") }
func (c roomResumeCmd) Run(w *world, p *roomCmd) error { return p.verb(w, c.Room, "resume") }
func (c roomCloseCmd) Run(w *world, p *roomCmd) error  { return p.verb(w, c.Room, "close") }
func (c roomValveCmd) Run(w *world, p *roomCmd) error {
	return p.one(w, http.MethodPatch, "/v1/admin/rooms/"+url.PathEscape(c.Room), map[string]string{"valve": c.Mode})
}

func (c roomRateCmd) Run(w *world, p *roomCmd) error   { return p.tune(w, "ratePerMinute", c.tuneArgs) }
func (c roomCapCmd) Run(w *world, p *roomCmd) error    { return p.tune(w, "cap", c.tuneArgs) }
func (c roomShareCmd) Run(w *world, p *roomCmd) error  { return p.tune(w, "priorityShare", c.tuneArgs) }
func (c roomStatusCmd) Run(w *world, p *roomCmd) error { return p.status(w, c.Room) }
