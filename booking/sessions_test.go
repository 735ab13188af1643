package booking

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"usher/admission/pass"
	"usher/booking/bookingtest"
)

func withPasses(p *passes) func(*Options) { return func(o *Options) { o.Verifier = p.verifier() } }

func unbound(jti string) pass.Claims {
	return pass.Claims{ID: jti, Room: "room", PlaceID: "place-" + jti, Customer: "fan"}
}

func bound(jti, secret string) pass.Claims {
	c := unbound(jti)
	c.BindingHash = pass.HashBinding(secret)
	return c
}

func sessionOffice(t *testing.T, change ...func(*Options)) (*Office, *passes, *pgxpool.Pool) {
	t.Helper()
	pool, p := bookingtest.Pool(t), newPasses(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{HoldSeconds: 600})
	return office(t, pool, append(change, withPasses(p))...), p, pool
}

func TestQ3_OnePassFromTwentyClientsIsOneSession(t *testing.T) {
	t.Parallel()
	of, p, pool := sessionOffice(t)
	token := p.mint(t, unbound("j1"))
	errs := race(20, func(int) error {
		_, _, err := of.OpenSession(context.Background(), token, "", "")
		return err
	})
	if count(errs, nil) != 1 || count(errs, ErrPassUsed) != 19 {
		t.Errorf("%d sessions, %d refused: %v", count(errs, nil), count(errs, ErrPassUsed), errs)
	}
	if n := number(t, pool, `SELECT count(*) FROM session`); n != 1 {
		t.Errorf("%d session rows", n)
	}
}

func TestTheBrowserThatJoinedMayAskTwice(t *testing.T) {
	t.Parallel()
	of, p, _ := sessionOffice(t)
	ctx := context.Background()
	token := p.mint(t, bound("j1", "secret"))
	for _, wrong := range []string{"", "guess"} {
		if _, _, err := of.OpenSession(ctx, token, wrong, ""); !errors.Is(err, ErrBindingRequired) {
			t.Errorf("binding %q before anybody: %v", wrong, err)
		}
	}
	first, created, err := of.OpenSession(ctx, token, "secret", "")
	if err != nil || !created || first.SeatQuota != 8 || first.Room != "room" || first.Customer != "fan" {
		t.Fatalf("got %+v created %v, %v", first, created, err)
	}
	for name, again := range map[string][2]string{"by binding": {"secret", ""}, "by cookie": {"", first.Token}} {
		s, created, err := of.OpenSession(ctx, token, again[0], again[1])
		if err != nil || created || s.Token != first.Token || s.ID != first.ID {
			t.Errorf("%s: %+v created %v, %v", name, s, created, err)
		}
	}
	if _, _, err := of.OpenSession(ctx, token, "guess", "x"+first.Token); !errors.Is(err, ErrPassUsed) {
		t.Errorf("a stranger: %v", err)
	}
	loose := p.mint(t, unbound("j2"))
	second, _, err := of.OpenSession(ctx, loose, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := of.OpenSession(ctx, loose, "", first.Token); !errors.Is(err, ErrPassUsed) {
		t.Errorf("another session's cookie: %v", err)
	}
	if s, created, err := of.OpenSession(ctx, loose, "", second.Token); err != nil || created || s.ID != second.ID {
		t.Errorf("its own cookie: %+v, %v", s, err)
	}
}

func TestBadPassesOpenNothing(t *testing.T) {
	t.Parallel()
	of, p, pool := sessionOffice(t)
	ctx := context.Background()
	old := unbound("old")
	old.IssuedAt = time.Now().Add(-time.Hour)
	elsewhere := unbound("elsewhere")
	elsewhere.Room = "no-such-room"
	good := p.mint(t, unbound("good"))
	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"empty": {"", ErrPassInvalid}, "garbage": {"a.b.c", ErrPassInvalid}, "truncated": {good[:len(good)-3], ErrPassInvalid},
		"forged": {newPasses(t).mint(t, unbound("f")), ErrPassInvalid}, "stale": {p.mint(t, old), ErrPassExpired},
		"foreign room": {p.mint(t, elsewhere), ErrPassInvalid},
	} {
		if _, _, err := of.OpenSession(ctx, c.token, "", ""); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := number(t, pool, `SELECT count(*) FROM session`); n != 0 {
		t.Errorf("%d sessions", n)
	}
	for _, token := range []string{"", ".", "x", "00000000-0000-7000-8000-000000000000.AAAA", good} {
		if _, err := of.Session(ctx, token); !errors.Is(err, ErrSessionInvalid) {
			t.Errorf("session token %q: %v", token, err)
		}
	}
}

func TestASessionLivesWithItsHoldAndNoLongerThanItsLease(t *testing.T) {
	t.Parallel()
	of, p, pool := sessionOffice(t)
	ctx := context.Background()
	s, _, err := of.OpenSession(ctx, p.mint(t, unbound("j")), "", "")
	if err != nil {
		t.Fatal(err)
	}
	set := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
		of.visits.forget(s.ID)
	}
	if _, _, err := of.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: []string{"A1"}}); err != nil {
		t.Fatal(err)
	}
	set(`UPDATE session SET expires_at = clock_timestamp() - interval '1 minute', created_at = clock_timestamp() - interval '16 minutes'`)
	got, err := of.Session(ctx, s.Token)
	if err != nil || time.Until(got.ExpiresAt) < 10*time.Minute {
		t.Errorf("with a live hold: until %s, %v", got.ExpiresAt, err)
	}
	set(`UPDATE session SET created_at = clock_timestamp() - $1::interval`, pass.LongestSession)
	if _, err := of.Session(ctx, s.Token); !errors.Is(err, ErrSessionEnded) {
		t.Errorf("past its lease: %v", err)
	}
	if _, _, err := of.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: []string{"A2"}}); !errors.Is(err, ErrSessionEnded) {
		t.Errorf("a take of a dead session: %v", err)
	}
	if r, err := of.ReaderSession(ctx, s.Token); err != nil || !r.Ended {
		t.Errorf("reading afterwards: %+v, %v", r, err)
	}
	if _, n, err := of.Sweep(ctx); err != nil || n != 1 {
		t.Errorf("swept %d sessions, %v", n, err)
	}
	set(`UPDATE session SET ended_at = clock_timestamp() - interval '25 hours'`)
	if _, err := of.ReaderSession(ctx, s.Token); !errors.Is(err, ErrSessionEnded) {
		t.Errorf("a day later: %v", err)
	}
}

func TestLeavingGivesOpenHoldsBackAndKeepsWhatIsBeingPaid(t *testing.T) {
	t.Parallel()
	of, p, pool := sessionOffice(t)
	ctx := context.Background()
	s, _, err := of.OpenSession(ctx, p.mint(t, unbound("j")), "", "")
	if err != nil {
		t.Fatal(err)
	}
	open, _, err := of.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: []string{"A1", "A2"}})
	if err != nil {
		t.Fatal(err)
	}
	paying, _, err := of.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: []string{"B1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `UPDATE hold SET state = 'PAYING' WHERE hold_id = $1`, paying.ID); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := of.EndSession(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	if h, _ := of.GetHold(ctx, s, open.ID); h.State != HoldReleased {
		t.Errorf("the open hold is %s", h.State)
	}
	if h, _ := of.GetHold(ctx, s, paying.ID); h.State != HoldPaying {
		t.Errorf("the hold in payment is %s", h.State)
	}
	if _, err := of.Session(ctx, s.Token); !errors.Is(err, ErrSessionEnded) {
		t.Errorf("the session: %v", err)
	}
	if _, _, err := of.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: []string{"C1"}}); !errors.Is(err, ErrSessionEnded) {
		t.Errorf("a take afterwards: %v", err)
	}
	sane(t, pool)
}

func TestEndingByABookingWaitsForTheLastHold(t *testing.T) {
	t.Parallel()
	of, p, pool := sessionOffice(t)
	ctx := context.Background()
	s, _, err := of.OpenSession(ctx, p.mint(t, unbound("j")), "", "")
	if err != nil {
		t.Fatal(err)
	}
	h, _, err := of.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: []string{"A1"}})
	if err != nil {
		t.Fatal(err)
	}
	confirmed := func() (ended bool) {
		if err := InTx(ctx, pool, func(tx pgx.Tx) (err error) {
			ended, err = EndSessionTx(ctx, tx, s.ID, EndConfirmed)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return ended
	}
	if confirmed() {
		t.Error("ended while a hold lives")
	}
	if err := of.ReleaseHold(ctx, s, h.ID); err != nil {
		t.Fatal(err)
	}
	if !confirmed() || confirmed() {
		t.Error("did not end, or ended twice")
	}
}

func TestASessionIsForItsRoomOnly(t *testing.T) {
	t.Parallel()
	of, _, pool := sessionOffice(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{Room: "other", Showtime: "elsewhere"})
	ann := fan(t, pool, "ann")
	for showtime, want := range map[string]error{"elsewhere": ErrWrongRoom, "nowhere": ErrUnknownShowtime} {
		if _, _, err := of.Hold(context.Background(), ann, HoldRequest{ShowtimeID: showtime, Seats: []string{"A1"}}); !errors.Is(err, want) {
			t.Errorf("%s: %v", showtime, err)
		}
	}
}

func TestTheReportTellsWhoIsInsideAndWhatIsLeft(t *testing.T) {
	t.Parallel()
	of, p, pool := sessionOffice(t)
	ctx := context.Background()
	var sessions []Session
	for _, jti := range []string{"j1", "j2"} {
		s, _, err := of.OpenSession(ctx, p.mint(t, unbound(jti)), "", "")
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	if _, _, err := of.Hold(ctx, sessions[0], HoldRequest{ShowtimeID: "show", Seats: []string{"A1", "A2"}}); err != nil {
		t.Fatal(err)
	}
	if err := of.EndSession(ctx, sessions[1]); err != nil {
		t.Fatal(err)
	}
	for of.left.last()["room"].available != 198 { // a report would drain the lanes' means
		time.Sleep(time.Millisecond)
	}
	reports, err := of.Reports(ctx)
	if err != nil || len(reports) != 1 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	r := reports[0]
	if r.Room.ID != "room" || r.Total != 200 || r.Available != 198 || r.SoldOut || r.Seq == 0 || time.Since(r.At).Abs() > time.Minute {
		t.Errorf("got %+v", r)
	}
	if len(r.Living) != 1 || r.Living[0].PlaceID != "place-j1" || r.Living[0].JTI != "j1" || r.Living[0].Began.IsZero() {
		t.Errorf("living %v", r.Living)
	}
	if len(r.Ended) != 1 || r.Ended[0].PlaceID != "place-j2" || r.Ended[0].JTI != "j2" {
		t.Errorf("ended %v", r.Ended)
	}
	if r.Lanes.Batch == 0 {
		t.Errorf("lanes %+v", r.Lanes)
	}
	bookingtest.Leave(t, pool, "show", 0)
	if r = reportWith(t, of, func(r RoomReport) bool { return r.SoldOut }); r.Available != 0 {
		t.Errorf("sold out: %+v", r)
	}
}

// A hold in payment may be given back once no payment of it can still arrive.
func TestAHoldInPaymentIsReleasedOnlyWhenNoMoneyCanCome(t *testing.T) {
	t.Parallel()
	of, _, pool := sessionOffice(t)
	ctx, ann := context.Background(), fan(t, pool, "ann")
	h, _, err := of.Hold(ctx, ann, HoldRequest{ShowtimeID: "show", Seats: []string{"A1"}})
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`UPDATE hold SET state = 'PAYING'`)
	exec(`INSERT INTO booking (showtime_id, booking_id, hold_id, scope_id, customer_id, session_id, room_id, seats, seat_count, amount, currency)
		SELECT showtime_id, hold_id, hold_id, scope_id, customer_id, session_id, 'room', seats, seat_count, amount, currency FROM hold`)
	exec(`INSERT INTO payment (showtime_id, payment_id, booking_id, attempt, provider, amount, currency, expires_at)
		SELECT showtime_id, booking_id, booking_id, 1, 'sandbox', amount, currency, clock_timestamp() FROM booking`)
	if err := of.ReleaseHold(ctx, ann, h.ID); !errors.Is(err, ErrHoldNotOpen) {
		t.Errorf("with a payment under way: %v", err)
	}
	exec(`UPDATE payment SET state = 'FAILED'`)
	if err := of.ReleaseHold(ctx, ann, h.ID); err != nil {
		t.Errorf("after the decline: %v", err)
	}
	if s := shown(t, of, "A1"); s != SeatAvailable {
		t.Errorf("the seat is %s", s)
	}
}

// A known customer's devices have passes of one id, each bound to its own browser: the
// session is of whoever came first.
func TestAPassOfTheSameIDFromAnotherBrowserIsRefused(t *testing.T) {
	t.Parallel()
	of, p, pool := sessionOffice(t)
	phone, laptop := p.mint(t, bound("j1", "phone's")), p.mint(t, bound("j1", "laptop's"))
	first, created, err := of.OpenSession(t.Context(), phone, "phone's", "")
	if err != nil || !created {
		t.Fatalf("%+v, %v", first, err)
	}
	if _, _, err := of.OpenSession(t.Context(), laptop, "laptop's", ""); !errors.Is(err, ErrPassUsed) {
		t.Errorf("the other browser: %v", err)
	}
	if s, _, err := of.OpenSession(t.Context(), laptop, "laptop's", first.Token); err != nil || s.ID != first.ID {
		t.Errorf("with the session's own cookie: %v", err)
	}
	if s, _, err := of.OpenSession(t.Context(), phone, "phone's", ""); err != nil || s.ID != first.ID {
		t.Errorf("the first browser again: %v", err)
	}
	if n := number(t, pool, `SELECT count(*) FROM session`); n != 1 {
		t.Errorf("%d session rows", n)
	}
}

// A node whose clock is slow takes a pass for good that is over. The line has freed its
// slot by then, so the database's clock has the last word; who is inside stays inside.
func TestASlowNodeOpensNothingWithAPassThatIsOver(t *testing.T) {
	t.Parallel()
	slow := func(p *passes) func(*Options) {
		return func(o *Options) {
			o.Verifier = pass.NewVerifier(pass.RingSource(func() pass.Ring { return p.ring }, time.Now),
				func() time.Time { return time.Now().Add(-time.Minute) })
		}
	}
	secret := func(o *Options) { o.SessionSecret = []byte("0123456789abcdef0123456789abcdef") }
	of, p, pool := sessionOffice(t, secret)
	late := office(t, pool, slow(p), secret)
	c := unbound("over")
	c.IssuedAt = time.Now().Add(-pass.Life - pass.Leeway - 2*time.Second).Truncate(time.Second)
	if _, _, err := late.OpenSession(t.Context(), p.mint(t, c), "", ""); !errors.Is(err, ErrPassExpired) {
		t.Errorf("a pass that is over: %v", err)
	}
	if n := number(t, pool, `SELECT count(*) FROM session`); n != 0 {
		t.Errorf("%d sessions", n)
	}
	first, _, err := of.OpenSession(t.Context(), p.mint(t, unbound("inside")), "", "")
	if err != nil {
		t.Fatal(err)
	}
	c.ID, c.PlaceID = "inside", "place-inside"
	if s, created, err := late.OpenSession(t.Context(), p.mint(t, c), "", first.Token); err != nil || created || s.ID != first.ID {
		t.Errorf("who is inside already: %+v, %v", s, err)
	}
}
