package booking

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"usher/booking/bookingtest"
)

// slowTake begins a hold of ann's that stays under way for a second, and returns
// when it is; wait returns what became of it.
func slowTake(t *testing.T, pool *pgxpool.Pool, of *Office, s Session) (wait func() error) {
	t.Helper()
	ctx := context.Background()
	if _, err := pool.Exec(ctx, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM pg_sleep(1); RETURN NEW; END $$;
		CREATE TRIGGER slow BEFORE INSERT ON hold FOR EACH ROW EXECUTE FUNCTION slow()`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := of.Hold(ctx, s, HoldRequest{ShowtimeID: "show", Seats: []string{"A1"}})
		done <- err
	}()
	for number(t, pool, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()`) == 0 {
		select {
		case err := <-done:
			t.Fatalf("the take was not slow: %v", err)
		default:
		}
	}
	return func() error { return <-done }
}

const sqlOrphans = `SELECT count(*) FROM hold h JOIN session s USING (session_id)
	WHERE s.ended_at IS NOT NULL AND h.state = 'OPEN' AND h.expires_at > clock_timestamp()`

// A hold that lives on in an ended session keeps seats from everybody and can be
// paid by nobody.
func TestATakeUnderWayLeavesNoHoldOnAnEndedSession(t *testing.T) {
	t.Parallel()
	patient := func(o *Options) { o.HoldDeadline = 20 * time.Second }
	for name, end := range map[string]func(t *testing.T, pool *pgxpool.Pool, of *Office, s Session){
		"the fan leaves": func(t *testing.T, _ *pgxpool.Pool, of *Office, s Session) {
			if err := of.EndSession(context.Background(), s); err != nil {
				t.Error(err)
			}
		},
		"another hold is confirmed": func(t *testing.T, pool *pgxpool.Pool, _ *Office, s Session) {
			err := InTx(context.Background(), pool, func(tx pgx.Tx) error {
				_, err := EndSessionTx(context.Background(), tx, s.ID, EndConfirmed)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		},
		"its time is over": func(t *testing.T, pool *pgxpool.Pool, of *Office, _ Session) {
			for number(t, pool, `SELECT count(*) FROM session WHERE expires_at <= clock_timestamp()`) == 0 {
				time.Sleep(time.Millisecond)
			}
			if _, _, err := of.Sweep(context.Background()); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := bookingtest.Pool(t)
			bookingtest.Seed(t, pool, bookingtest.Hall{})
			of, ann := office(t, pool, patient), fan(t, pool, "ann")
			if name == "its time is over" {
				if _, err := pool.Exec(context.Background(), `UPDATE session SET expires_at = clock_timestamp() + interval '500 ms'`); err != nil {
					t.Fatal(err)
				}
			}
			took := slowTake(t, pool, of, ann)
			end(t, pool, of, ann)
			if err := took(); err != nil {
				t.Errorf("the take: %v", err)
			}
			if n := number(t, pool, sqlOrphans); n != 0 {
				t.Errorf("%d holds live on in an ended session", n)
			}
		})
	}
}
