package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"usher/queue"
)

// verifyDrawCmd trusts nothing but what it recomputes. It needs no token: anybody
// may check a draw.
type verifyDrawCmd struct {
	Room  string `arg:"" name:"url|room" help:"The room's address, as fans see it, or its id."`
	Edge  string `env:"USHER_EDGE_URL" default:"http://127.0.0.1:8080" placeholder:"URL" help:"The edge that publishes the draw, when only an id is given (default ${default})."`
	Place string `placeholder:"ID" help:"A place id (32 hex digits): its rank is told."`
	Rank  int    `placeholder:"N" help:"With --place: the number that was shown after the draw; another one is a mismatch."`
}

// publishedDraw is the document of GET /v1/rooms/{room}/draw.
type publishedDraw struct {
	Room, Algorithm, Commitment, PublicValue string
	Run                                      int
	Seed, EntriesDigest, OrderKey, DrawnAt   *string
	Entries                                  *int
	EntriesURL                               string
}

// address is the draw's document: of https://host/rooms/arena, …/rooms/arena/draw,
// …/v1/rooms/arena/draw, or of an id.
func (c verifyDrawCmd) address() (string, error) {
	base, room := c.Edge, c.Room
	if strings.Contains(c.Room, "/") {
		u, err := url.Parse(c.Room)
		if err != nil || u.Host == "" {
			return "", fmt.Errorf("%q is no address of a room; it looks like https://tickets.example.com/rooms/arena", c.Room)
		}
		path, rest, found := strings.Cut(u.Path, "/rooms/")
		room, _, _ = strings.Cut(rest, "/")
		if !found || room == "" {
			return "", fmt.Errorf("%q is no address of a room; it looks like https://tickets.example.com/rooms/arena", c.Room)
		}
		base = u.Scheme + "://" + u.Host + strings.TrimSuffix(path, "/v1")
	}
	return strings.TrimRight(base, "/") + "/v1/rooms/" + url.PathEscape(room) + "/draw", nil
}

// Run downloads, recomputes and tells.
func (c verifyDrawCmd) Run(w *world) error {
	address, err := c.address()
	if err != nil {
		return err
	}
	place, err := hex.DecodeString(c.Place)
	if c.Place != "" && (err != nil || len(place) != 16) {
		return fmt.Errorf("--place must be 32 hex digits, not %q", c.Place)
	}
	var d publishedDraw
	body, _, err := c.get(w, address)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, &d); err != nil {
		return fmt.Errorf("%s is no draw: %w", address, err)
	}
	seed, digest, err := d.check(w.out)
	if err != nil {
		return err
	}
	entries, err := c.entries(w, address, *d.Entries)
	if err != nil {
		return err
	}
	if got := queue.EntriesDigest(entries); got != digest {
		return fmt.Errorf("digest MISMATCH: %s is published, the list's is %x", *d.EntriesDigest, got)
	}
	_, _ = fmt.Fprintf(w.out, "digest      ok  %x of %d places\n", digest, len(entries)/16)
	return c.rank(w, d, seed, digest, entries, place)
}

// check reads the document and holds the seed against what was committed to.
func (d publishedDraw) check(out io.Writer) (seed []byte, digest [32]byte, err error) {
	switch {
	case d.Algorithm != queue.DrawAlgorithm:
		return nil, digest, fmt.Errorf("the draw is by %q; this program checks %s", d.Algorithm, queue.DrawAlgorithm)
	case d.Seed == nil || d.EntriesDigest == nil || d.Entries == nil || d.OrderKey == nil:
		return nil, digest, fmt.Errorf("the room has not been drawn yet; its commitment is %s", d.Commitment)
	}
	seed, err = hex.DecodeString(*d.Seed)
	if err != nil || len(seed) != 32 {
		return nil, digest, fmt.Errorf("seed MISMATCH: %q is not 64 hex digits", *d.Seed)
	}
	sum, err := hex.DecodeString(*d.EntriesDigest)
	if err != nil || len(sum) != sha256.Size {
		return nil, digest, fmt.Errorf("digest MISMATCH: %q is not 64 hex digits", *d.EntriesDigest)
	}
	if got := queue.DrawCommitment(d.Room, d.Run, seed); got != d.Commitment {
		return nil, digest, fmt.Errorf("commitment MISMATCH: %s was published, the seed gives %s", d.Commitment, got)
	}
	_, _ = fmt.Fprintf(out, "room %s, run %d, drawn at %s, public value %q\n", d.Room, d.Run, orDash(d.DrawnAt), d.PublicValue)
	_, _ = fmt.Fprintf(out, "commitment  ok  %s\n", d.Commitment)
	return seed, [32]byte(sum), nil
}

func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// entries downloads the whole list.
func (c verifyDrawCmd) entries(w *world, address string, n int) ([]byte, error) {
	entries := make([]byte, 0, min(max(n, 0), 1<<24)*16)
	for next := "0"; next != ""; {
		body, header, err := c.get(w, address+"/entries?from="+url.QueryEscape(next))
		if slow := (*tooFastError)(nil); errors.As(err, &slow) { // many check from this address
			select {
			case <-w.ctx.Done():
				return nil, w.ctx.Err()
			case <-time.After(slow.again):
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		before := len(entries)
		lines := bufio.NewScanner(strings.NewReader(string(body)))
		for lines.Scan() {
			id, err := hex.DecodeString(lines.Text())
			if err != nil || len(id) != 16 || lines.Text() != strings.ToLower(lines.Text()) {
				return nil, fmt.Errorf("entries MISMATCH: line %d of the list is %q, no place id", len(entries)/16+1, lines.Text())
			}
			entries = append(entries, id...)
		}
		if next = header.Get("Usher-Next"); next != "" && len(entries) == before {
			return nil, errors.New("entries MISMATCH: the list does not end")
		}
	}
	if len(entries)/16 != n {
		return nil, fmt.Errorf("entries MISMATCH: %d are announced, the list has %d", n, len(entries)/16)
	}
	return entries, nil
}

func (c verifyDrawCmd) rank(w *world, d publishedDraw, seed []byte, digest [32]byte, entries, place []byte) error {
	if got := hex.EncodeToString(queue.DrawKey(seed, digest, d.PublicValue)); got != *d.OrderKey {
		return fmt.Errorf("order MISMATCH: the key %s is published; seed, digest and public value give %s", *d.OrderKey, got)
	}
	_, _ = fmt.Fprintf(w.out, "order key   ok  %s\n", *d.OrderKey)
	order := queue.NewDrawer(seed, digest, d.PublicValue).Rank(entries)
	if len(place) == 0 {
		_, err := fmt.Fprintf(w.out, "order       ok  %d ranks recomputed\n", len(order))
		return err
	}
	for i, r := range order {
		if string(r.Place[:]) == string(place) {
			if c.Rank > 0 && c.Rank != i+1 {
				return fmt.Errorf("rank MISMATCH: place %x was drawn as number %d of %d, not %d", place, i+1, len(order), c.Rank)
			}
			_, err := fmt.Fprintf(w.out, "place %x was drawn as number %d of %d\n", place, i+1, len(order))
			return err
		}
	}
	return fmt.Errorf("place %x took no part in the draw: it came later, or left before", place)
}

// mostDrawBytes bounds one answer: 100,000 lines have 3.3 MB.
const mostDrawBytes = 8 << 20

// tooFastError is an edge's "not so many".
type tooFastError struct{ again time.Duration }

func (e *tooFastError) Error() string {
	return fmt.Sprintf("too many requests; try again in %s", e.again)
}

func (c verifyDrawCmd) get(w *world, address string) ([]byte, http.Header, error) {
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	res, err := (&http.Client{Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("nobody answers at %s: %w", address, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, mostDrawBytes+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", address, err)
	case len(body) > mostDrawBytes:
		return nil, nil, fmt.Errorf("%s answers more than %d bytes", address, mostDrawBytes)
	case res.StatusCode == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return nil, nil, &tooFastError{time.Duration(min(max(seconds, 1), 60)) * time.Second}
	case res.StatusCode != http.StatusOK:
		var p struct{ Title, Detail string }
		if json.Unmarshal(body, &p) == nil && p.Title != "" {
			return nil, nil, fmt.Errorf("%s. %s", p.Title, p.Detail)
		}
		return nil, nil, fmt.Errorf("%s answers %s", address, res.Status)
	}
	return body, res.Header, nil
}
