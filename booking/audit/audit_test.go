package audit

import (
	"context"
	_ "embed"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"usher/booking/bookingtest"
	"usher/booking/catalog"
	"usher/booking/schema"
	"usher/internal/devstack/devstacktest"
)

func TestMain(m *testing.M) { os.Exit(devstacktest.Main(m)) }

//go:embed testdata/show.yaml
var show []byte

//go:embed testdata/sales.sql
var sales string

// sold is a database after one of everything that happens at a box office; each
// test has a copy.
func sold(t *testing.T) *pgxpool.Pool {
	t.Helper()
	return bookingtest.PoolOn(t, devstacktest.PostgresURL(t, "sold", sell))
}

func sell(ctx context.Context, url string) error {
	if err := schema.Up(ctx, url); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	f, err := catalog.Parse("show.yaml", show)
	if err != nil {
		return err
	}
	if _, err := catalog.Apply(ctx, pool, f, "test"); err != nil {
		return err
	}
	_, err = pool.Exec(ctx, sales)
	return err
}

func TestCleanDatabaseHasNoBreach(t *testing.T) {
	t.Parallel()
	for name, pool := range map[string]*pgxpool.Pool{"empty": bookingtest.Pool(t), "sold": sold(t)} {
		found, err := Check(context.Background(), pool)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 {
			t.Errorf("%s: %s", name, Format(found))
		}
	}
	if got := Format(nil); !strings.HasPrefix(got, "ok: ") {
		t.Errorf("Format of nothing is %q", got)
	}
}

// breaks spoils a clean database, at least once for each invariant. want is all that
// Check must then say, and nothing else: some invariants cannot be broken without
// breaking another too.
var breaks = []struct {
	name, sql string
	want      []string // invariant, then ": " and a part of the key
}{
	{"seat-state", `ALTER TABLE show_seat DROP CONSTRAINT show_seat_state;
		UPDATE show_seat SET customer_id = 'ghost' WHERE seat_code = 'B6'`,
		[]string{"seat-state: seat_code=B6"}},
	{"seat-state: unknown status", `ALTER TABLE show_seat DROP CONSTRAINT show_seat_state;
		UPDATE show_seat SET status = 'GONE' WHERE seat_code = 'B6'`,
		[]string{"seat-state: seat_code=B6"}},
	{"seat-once: two live holds", `
		INSERT INTO hold SELECT showtime_id, '10000000-0000-0000-0000-000000000009', scope_id, 'fan-9', session_id,
			'{B2}', 1, 100, 'EUR', state, expires_at FROM hold WHERE hold_id::text LIKE '%4'`,
		[]string{"seat-once: seat_code=B2", "hold-has-seats: hold_id=10000000-0000-0000-0000-000000000009"}},
	{"seat-once: two valid tickets", `DROP INDEX ticket_one_live;
		INSERT INTO ticket VALUES ('show', '60000000-0000-0000-0000-0000000000ff', '20000000-0000-0000-0000-000000000001', 'A1', 'x', 'seat', 0)`,
		[]string{"seat-once: seat_code=A1", "booked-seat-has-ticket: seat_code=A1", "booking-has-tickets: booking_id=20000000-0000-0000-0000-000000000001"}},
	{"held-seat-has-hold: no such hold", `
		UPDATE show_seat SET status = 'HELD', hold_id = gen_random_uuid(), customer_id = 'x', hold_expires_at = now() + interval '1 hour'
		 WHERE seat_code = 'B6'`,
		[]string{"held-seat-has-hold: seat_code=B6"}},
	{"held-seat-has-hold: another clock", `UPDATE show_seat SET hold_expires_at = hold_expires_at + interval '1 s' WHERE seat_code = 'B1'`,
		[]string{"held-seat-has-hold: seat_code=B1"}},
	{"held-seat-has-hold: released hold kept its seats", `UPDATE hold SET state = 'RELEASED' WHERE hold_id::text LIKE '%4'`,
		[]string{"held-seat-has-hold: seat_code=B1", "held-seat-has-hold: seat_code=B2"}},
	{"hold-has-seats: a seat was given back", `
		UPDATE show_seat SET status = 'AVAILABLE', hold_id = NULL, customer_id = NULL, hold_expires_at = NULL WHERE seat_code = 'B2'`,
		[]string{"hold-has-seats: hold_id=10000000-0000-0000-0000-000000000004"}},
	{"booked-seat-has-ticket", `
		UPDATE show_seat SET status = 'BOOKED', hold_id = gen_random_uuid(), customer_id = 'x', booking_id = gen_random_uuid() WHERE seat_code = 'B6'`,
		[]string{"booked-seat-has-ticket: seat_code=B6"}},
	{"valid-ticket-has-seat", `
		UPDATE show_seat SET status = 'AVAILABLE', hold_id = NULL, customer_id = NULL, booking_id = NULL WHERE seat_code = 'A5'`,
		[]string{"valid-ticket-has-seat: ticket_id=60000000-0000-0000-0000-0000000000a5"}},
	{"layout-has-seats: a row is missing", `DELETE FROM show_seat WHERE seat_code = 'B6'`,
		[]string{"layout-has-seats: seat_code=B6"}},
	{"layout-has-seats: a row too many", `INSERT INTO show_seat (showtime_id, seat_code) VALUES ('show', 'Z9')`,
		[]string{"layout-has-seats: seat_code=Z9"}},
	{"capacity", `UPDATE event SET max_per_customer = NULL;
		INSERT INTO hold SELECT showtime_id, '10000000-0000-0000-0000-000000000009', scope_id, 'fan-9', session_id,
			'{B6,B6,B6,B6,B6,B6,B6}', 7, 0, 'EUR', state, expires_at FROM hold WHERE hold_id::text LIKE '%4'`,
		[]string{"seat-once: seat_code=B6", "hold-has-seats: 009", "capacity: showtime_id=show"}},
	{"customer-limit", `UPDATE event SET max_per_customer = 1`,
		[]string{"customer-limit: customer_id=fan-1", "customer-limit: customer_id=fan-4"}},
	{"scope: hold", `UPDATE hold SET scope_id = 'event:e' WHERE hold_id::text LIKE '%4'`, []string{"scope: hold_id=10000000-0000-0000-0000-000000000004"}},
	{"scope: booking", `UPDATE booking SET scope_id = 'event:e' WHERE booking_id::text LIKE '%1'`, []string{"scope: booking_id=20000000-0000-0000-0000-000000000001"}},
	{"confirmed-hold-has-booking", `UPDATE hold SET state = 'CONFIRMED' WHERE hold_id::text LIKE '%3'`,
		[]string{"confirmed-hold-has-booking: hold_id=10000000-0000-0000-0000-000000000003"}},
	{"booking-has-hold: hold not confirmed", `UPDATE hold SET state = 'RELEASED' WHERE hold_id::text LIKE '%1'`,
		[]string{"booking-has-hold: booking_id=20000000-0000-0000-0000-000000000001"}},
	{"booking-has-hold: another amount", `UPDATE hold SET amount = 1 WHERE hold_id::text LIKE '%1'`,
		[]string{"booking-has-hold: booking_id=20000000-0000-0000-0000-000000000001"}},
	{"booking-has-tickets: one too cheap", `UPDATE ticket SET amount = 99 WHERE seat_code = 'A1'`,
		[]string{"booking-has-tickets: booking_id=20000000-0000-0000-0000-000000000001"}},
	{"booking-has-tickets: a failed booking has one", `
		INSERT INTO ticket VALUES ('show', gen_random_uuid(), '20000000-0000-0000-0000-000000000003', 'A4', 'x', 'seat', 100, 'REFUNDED')`,
		[]string{"booking-has-tickets: booking_id=20000000-0000-0000-0000-000000000003"}},
	{"money-balance: taken and forgotten", `DELETE FROM refund WHERE refund_id::text LIKE '%3'; UPDATE payment SET state = 'REFUND_DUE' WHERE payment_id::text LIKE '%3'`,
		[]string{"money-balance: booking_id=20000000-0000-0000-0000-000000000003", "payment-state: payment_id=30000000-0000-0000-0000-000000000003"}},
	{"money-balance: refunded amount not booked", `UPDATE booking SET refunded_amount = 0 WHERE booking_id::text LIKE '%7'`,
		[]string{"money-balance: booking_id=20000000-0000-0000-0000-000000000007"}},
	{"refund-within-capture", `UPDATE payment SET captured_amount = 99 WHERE payment_id::text LIKE '%7'`,
		[]string{"money-balance: 007", "refund-within-capture: payment_id=30000000-0000-0000-0000-000000000007"}},
	{"refund-booking", `UPDATE refund SET booking_id = '20000000-0000-0000-0000-000000000001' WHERE refund_id::text LIKE '%7'`,
		[]string{"money-balance: 001", "money-balance: 007", "refund-booking: refund_id=40000000-0000-0000-0000-000000000007"}},
	{"payment-state: pending with money", `UPDATE payment SET state = 'PENDING' WHERE payment_id::text LIKE '%1' AND attempt = 1`,
		[]string{"payment-state: payment_id=30000000-0000-0000-0000-000000000001", "one-captured: booking_id=20000000-0000-0000-0000-000000000001"}},
	{"payment-state: refunded before it was", `UPDATE payment SET state = 'REFUNDED' WHERE payment_id::text LIKE '%3'`,
		[]string{"payment-state: payment_id=30000000-0000-0000-0000-000000000003"}},
	{"payment-state: due for ever", `UPDATE payment SET state = 'REFUND_DUE' WHERE payment_id::text LIKE '%2'`,
		[]string{"payment-state: payment_id=30000000-0000-0000-0000-000000000002"}},
	{"one-captured: two of one booking", `DROP INDEX payment_one_captured;
		UPDATE payment SET state = 'CAPTURED', captured_amount = 200 WHERE attempt = 2`,
		[]string{"money-balance: 001", "one-captured: booking_id=20000000-0000-0000-0000-000000000001"}},
	{"payment-currency", `UPDATE payment SET currency = 'USD' WHERE payment_id::text LIKE '%6'`,
		[]string{"payment-currency: payment_id=30000000-0000-0000-0000-000000000006"}},
	{"idempotency-points-at-booking", `UPDATE idempotency SET customer_id = 'fan-2' WHERE key = 'k1'`,
		[]string{"idempotency-points-at-booking: key=k1"}},
	{"outbox-confirmed-once: twice", `INSERT INTO outbox VALUES ('show', gen_random_uuid(), '20000000-0000-0000-0000-000000000001', 2, 'BookingConfirmed', '{}')`,
		[]string{"outbox-confirmed-once: booking_id=20000000-0000-0000-0000-000000000001"}},
	{"outbox-confirmed-once: never", `DELETE FROM outbox WHERE booking_id::text LIKE '%1'`,
		[]string{"outbox-confirmed-once: booking_id=20000000-0000-0000-0000-000000000001"}},
	{"outbox-sequence", `UPDATE outbox SET seq = 3 WHERE seq = 2 AND booking_id::text LIKE '%7'`,
		[]string{"outbox-sequence: booking_id=20000000-0000-0000-0000-000000000007"}},
	{"outbox-has-booking", `INSERT INTO outbox VALUES ('show', '70000000-0000-0000-0000-000000000001', gen_random_uuid(), 1, 'BookingFailed', '{}')`,
		[]string{"outbox-has-booking: event_id=70000000-0000-0000-0000-000000000001"}},
	{"one-session-per-pass", `ALTER TABLE session DROP CONSTRAINT session_jti_key;
		UPDATE session SET jti = 'pass-4' WHERE customer_id = 'fan-5'`,
		[]string{"one-session-per-pass: jti=pass-4"}},
	{"session-ended: in the future", `UPDATE session SET ended_at = now() + interval '1 hour' WHERE customer_id = 'fan-1'`,
		[]string{"session-ended: session_id=50000000-0000-0000-0000-000000000001"}},
	{"session-ended: without a reason", `ALTER TABLE session DROP CONSTRAINT session_check;
		UPDATE session SET end_reason = NULL WHERE customer_id = 'fan-1'`,
		[]string{"session-ended: session_id=50000000-0000-0000-0000-000000000001"}},
	{"buyer-has-left", `UPDATE session SET ended_at = NULL, end_reason = NULL WHERE customer_id = 'fan-1'`,
		[]string{"buyer-has-left: session_id=50000000-0000-0000-0000-000000000001"}},
	{"revoked-takes-nothing: a customer", `
		UPDATE revocation SET created_at = (SELECT h.created_at FROM hold h WHERE h.customer_id = 'fan-3') - interval '2 s' WHERE subject = 'fan-3'`,
		[]string{"revoked-takes-nothing: hold_id=10000000-0000-0000-0000-000000000003"}},
	{"revoked-takes-nothing: everybody before", `
		INSERT INTO revocation (revocation_id, kind, subject, granted_before, actor, created_at)
		VALUES (gen_random_uuid(), 'everybody', '', now(), 'olga', (SELECT min(created_at) FROM hold) - interval '2 s');
		UPDATE session SET granted_at = now() + interval '1 s' WHERE customer_id <> 'fan-5'`,
		[]string{"revoked-takes-nothing: hold_id=10000000-0000-0000-0000-000000000005"}},
	{"revoked-buys-nothing", `
		INSERT INTO revocation (revocation_id, kind, subject, actor) VALUES (gen_random_uuid(), 'pass', 'pass-1', 'olga');
		UPDATE booking SET confirmed_at = now() + interval '1 hour' WHERE customer_id = 'fan-1'`,
		[]string{"revoked-buys-nothing: booking_id=20000000-0000-0000-0000-000000000001"}},
	{"revoked-holds-nothing", `
		INSERT INTO revocation (revocation_id, kind, subject, actor, created_at)
		VALUES (gen_random_uuid(), 'place', 'place-4', 'olga', now() - interval '61 s');
		UPDATE hold SET created_at = now() - interval '3 min'`,
		[]string{"revoked-holds-nothing: hold_id=10000000-0000-0000-0000-000000000004"}},
}

// Each break is undone by a rollback, so that one database serves them all.
func TestEveryInvariantIsSeenBroken(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := sold(t)
	tried := map[string]bool{}
	for _, b := range breaks {
		name, _, _ := strings.Cut(b.name, ":")
		tried[name] = true
		t.Run(b.name, func(t *testing.T) {
			tx, err := pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(ctx) }()
			if _, err := tx.Exec(ctx, b.sql); err != nil {
				t.Fatal(err)
			}
			found, err := check(ctx, tx)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, found, name, b.want)
		})
	}
	for _, name := range Invariants() {
		if !tried[name] {
			t.Errorf("no test breaks %s", name)
		}
	}
}

func TestCheckReportsWhatIsCommitted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := sold(t)
	if _, err := pool.Exec(ctx, `DELETE FROM show_seat WHERE seat_code = 'B6'`); err != nil {
		t.Fatal(err)
	}
	found, err := Check(ctx, pool)
	if err != nil {
		t.Fatal(err)
	}
	const want = `layout-has-seats: show_seat (showtime_id=show seat_code=B6): expected the seats of the layout, each once, found no row for a seat of the layout
1 breaches of 1 of 29 invariants
`
	if got := Format(found); got != want {
		t.Errorf("got %s", got)
	}
}

// compare matches breaches and wishes one to one.
func compare(t *testing.T, found []Breach, name string, want []string) {
	t.Helper()
	left := slices.Clone(found)
	for _, w := range want {
		invariant, key, _ := strings.Cut(w, ": ")
		i := slices.IndexFunc(left, func(b Breach) bool { return b.Invariant == invariant && strings.Contains(b.Key, key) })
		if i < 0 {
			t.Errorf("not found: %s, in\n%s", w, Format(found))
			return
		}
		if left[i].Table == "" || left[i].Expected == "" || left[i].Found == "" {
			t.Errorf("says too little: %+v", left[i])
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		t.Errorf("also found:\n%s", Format(left))
	}
	if !slices.ContainsFunc(found, func(b Breach) bool { return b.Invariant == name }) {
		t.Errorf("%s is not among\n%s", name, Format(found))
	}
}
