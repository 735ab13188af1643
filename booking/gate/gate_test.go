package gate

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"usher/booking/bookingtest"
	"usher/internal/devstack/devstacktest"
)

func TestMain(m *testing.M) { os.Exit(devstacktest.Main(m)) }

func signer(t testing.TB, secrets ...byte) *Signer {
	t.Helper()
	var all [][]byte
	for _, b := range secrets {
		all = append(all, bytes.Repeat([]byte{b}, 32))
	}
	s, err := NewSigner(all)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryStatementPreparesAgainstTheSchema(t *testing.T) {
	t.Parallel()
	bookingtest.Prepares(t, statements)
}

// sold is a hall with two performances and n tickets for "show".
func sold(t *testing.T, n int) (pool *pgxpool.Pool, tickets []Ticket) {
	t.Helper()
	pool = bookingtest.Pool(t)
	seats := bookingtest.Seed(t, pool, bookingtest.Hall{})
	bookingtest.Seed(t, pool, bookingtest.Hall{Showtime: "matinee"})
	booking := uuid.New()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO booking (showtime_id, booking_id, hold_id, scope_id, customer_id, session_id, room_id, seats, seat_count, amount, currency)
	      VALUES ('show', $1, gen_random_uuid(), 'show', 'ana', gen_random_uuid(), 'room', $2, $3, 100, 'EUR')`, booking, seats[:n], n)
	for i := range n {
		k := Ticket{ID: uuid.New(), ShowtimeID: "show", Seat: seats[i]}
		exec(`INSERT INTO ticket (showtime_id, ticket_id, booking_id, seat_code, code, price_class, amount)
		      VALUES ('show', $1, $2, $3, $4, 'A', 100)`, k.ID, booking, k.Seat, fmt.Sprintf("PLAINCODE%c", 'A'+i))
		tickets = append(tickets, k)
	}
	return pool, tickets
}

// Of a hundred scanners at once, in two processes, one lets the ticket in.
func TestATicketLetsOneIn(t *testing.T) {
	t.Parallel()
	pool, tickets := sold(t, 1)
	gates := []*Gate{New(pool, signer(t, 1)), New(bookingtest.PoolOn(t, pool.Config().ConnString()), signer(t, 1))}
	var mu sync.Mutex
	results := map[string]int{}
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			<-start
			e, err := gates[i%2].Scan(t.Context(), Scan{Code: gates[0].Code(tickets[0]), ShowtimeID: "show", Scanner: fmt.Sprint("door-", i), Key: "k"})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			results[e.Result]++
			mu.Unlock()
		})
	}
	close(start)
	wg.Wait()
	if results[Valid] != 1 || results[AlreadyIn] != 99 {
		t.Errorf("%v", results)
	}
}

// M12, pretix #3187: what a scan comes to, in its reasons.
func TestM12_TheDoorSaysWhy(t *testing.T) {
	t.Parallel()
	pool, tickets := sold(t, 4)
	g := New(pool, signer(t, 1))
	scan := func(s Scan) Entry {
		t.Helper()
		if s.ShowtimeID == "" {
			s.ShowtimeID = "show"
		}
		e, err := g.Scan(t.Context(), s)
		if err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		return e
	}
	code := g.Code(tickets[0])
	if e := scan(Scan{Code: code, ShowtimeID: "matinee", Scanner: "door"}); e.Result != WrongShowtime || e.ShowtimeID != "show" || e.StartsAt.IsZero() || !e.EnteredAt.IsZero() {
		t.Errorf("at another performance's door: %+v", e)
	}
	if e := scan(Scan{Code: code, Scanner: "door", Key: "scan-1"}); e.Result != Valid || e.Seat != tickets[0].Seat || e.EnteredBy != "door" || e.EnteredAt.IsZero() || e.Row == "" {
		t.Errorf("first: %+v", e)
	}
	if e := scan(Scan{Code: code, Scanner: "door", Key: "scan-1"}); e.Result != Valid {
		t.Errorf("the same scan again, its answer was lost: %+v", e)
	}
	for _, s := range []Scan{{Scanner: "door"}, {Scanner: "door", Key: "scan-2"}, {Scanner: "other door", Key: "scan-1"}} {
		s.Code = code
		if e := scan(s); e.Result != AlreadyIn || e.EnteredBy != "door" {
			t.Errorf("%+v: %+v", s, e)
		}
	}
	if _, err := pool.Exec(t.Context(), `UPDATE ticket SET state = 'REFUNDED' WHERE ticket_id = ANY($1)`, []uuid.UUID{tickets[1].ID, tickets[0].ID}); err != nil {
		t.Fatal(err)
	}
	if e := scan(Scan{Code: g.Code(tickets[1]), Scanner: "door"}); e.Result != Refunded || !e.EnteredAt.IsZero() {
		t.Errorf("given back: %+v", e)
	}
	if e := scan(Scan{Code: code, Scanner: "door", Key: "scan-1"}); e.Result != Refunded {
		t.Errorf("given back after its scan: %+v", e)
	}
	if e := scan(Scan{Code: "PLAINCODEC", Scanner: "door"}); e.Result != Valid || e.TicketID != tickets[2].ID.String() {
		t.Errorf("a code of before codes were signed: %+v", e)
	}
	other := Ticket{ID: uuid.New(), ShowtimeID: "show", Seat: "A1"}
	for name, code := range map[string]string{
		"another secret":     signer(t, 2).Code(tickets[3]),
		"not in the books":   g.Code(other),
		"of no performance":  g.Code(Ticket{ID: tickets[3].ID, ShowtimeID: "nowhere", Seat: "A1"}),
		"nothing":            "UT1",
		"no base32":          "a\x00b",
		"a code of nobody's": "PLAINCODEZ",
		"lower case":         strings.ToLower(g.Code(tickets[3])),
	} {
		if e, err := g.Scan(t.Context(), Scan{Code: code, ShowtimeID: "show", Scanner: "door"}); !errors.Is(err, ErrNoTicket) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	for _, show := range []string{"nowhere", "a\x00b", ""} {
		if _, err := g.Scan(t.Context(), Scan{Code: g.Code(tickets[3]), ShowtimeID: show}); !errors.Is(err, ErrUnknownShowtime) {
			t.Errorf("%q: %v", show, err)
		}
	}
	if e := scan(Scan{Code: g.Code(tickets[3]), Scanner: "door"}); e.Result != Valid {
		t.Errorf("after all that: %+v", e)
	}
}

// The list is good by the published keys alone, names who was given back, and is small.
func TestTheListOfRevokedTickets(t *testing.T) {
	t.Parallel()
	pool, tickets := sold(t, 3)
	g := New(pool, signer(t, 1, 2))
	if _, err := pool.Exec(t.Context(), `UPDATE ticket SET state = 'REFUNDED' WHERE ticket_id = $1`, tickets[1].ID); err != nil {
		t.Fatal(err)
	}
	list, err := g.Revoked(t.Context(), "show")
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(g.Keys(), &set); err != nil || len(set.Keys) != 2 {
		t.Fatalf("%s, %v", g.Keys(), err)
	}
	var claims struct {
		jwt.RegisteredClaims
		Revoked []string `json:"revoked"`
	}
	if _, err := jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithIssuedAt()).ParseWithClaims(list, &claims, func(token *jwt.Token) (any, error) {
		for _, k := range set.Keys {
			if k["kid"] == token.Header["kid"] && token.Header["typ"] == RevokedType {
				x, err := base64.RawURLEncoding.DecodeString(k["x"])
				return ed25519.PublicKey(x), err
			}
		}
		return nil, errors.New("no key")
	}); err != nil {
		t.Fatal(err)
	}
	if claims.Subject != "show" || len(claims.Revoked) != 1 || claims.Revoked[0] != tickets[1].ID.String() || claims.IssuedAt == nil {
		t.Errorf("%+v", claims)
	}
	if _, err := g.Revoked(t.Context(), "nowhere"); !errors.Is(err, ErrUnknownShowtime) {
		t.Error(err)
	}
}

func TestCodesAreReadBackAndNothingElseIs(t *testing.T) {
	t.Parallel()
	s := signer(t, 7)
	rapid.Check(t, func(t *rapid.T) {
		k := Ticket{
			ID: uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")), ShowtimeID: rapid.StringMatching(`[a-z0-9-]{1,64}`).Draw(t, "show"),
			Seat: rapid.StringMatching(`[A-Z0-9-]{1,16}`).Draw(t, "seat"),
		}
		code := s.Code(k)
		if got, err := s.Read(code); err != nil || got != k {
			t.Fatalf("%+v, %v", got, err)
		}
		if strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" || len(code) > longest {
			t.Fatalf("no QR code writes it short: %s", code)
		}
		at := rapid.IntRange(0, len(code)-1).Draw(t, "at")
		letter := rapid.SampledFrom([]byte("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")).Draw(t, "letter")
		if changed := code[:at] + string(letter) + code[at+1:]; changed != code {
			if got, err := s.Read(changed); !errors.Is(err, ErrNoTicket) {
				t.Fatalf("with letter %d changed it reads %+v, %v", at, got, err)
			}
		}
		if got, err := s.Read(rapid.String().Draw(t, "anything")); !errors.Is(err, ErrNoTicket) {
			t.Fatalf("%+v, %v", got, err)
		}
	})
}

// A secret that goes behind a new one still opens what it signed.
func TestSecretsRotate(t *testing.T) {
	t.Parallel()
	k := Ticket{ID: uuid.New(), ShowtimeID: "show", Seat: "A1"}
	before, after, gone := signer(t, 1), signer(t, 2, 1), signer(t, 2)
	if got, err := after.Read(before.Code(k)); err != nil || got != k {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := gone.Read(after.Code(k)); err != nil || got != k {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := gone.Read(before.Code(k)); !errors.Is(err, ErrNoTicket) {
		t.Errorf("by a secret that is gone: %v", err)
	}
	for _, secrets := range [][][]byte{nil, {make([]byte, 31)}} {
		if _, err := NewSigner(secrets); err == nil {
			t.Errorf("%d secrets", len(secrets))
		}
	}
	// The derivation is part of every printed ticket: it never changes.
	if got := hex.EncodeToString(before.keys[0].id); got != "ac3b4d7e" {
		t.Errorf("the key id of a known secret is %s", got)
	}
}
