package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"usher/booking"
	"usher/booking/bookingtest"
	"usher/internal/devstack/devstacktest"
)

func TestMain(m *testing.M) { os.Exit(devstacktest.Main(m)) }

func TestEveryStatementPreparesAgainstTheSchema(t *testing.T) {
	t.Parallel()
	bookingtest.Prepares(t, statements)
}

// Writers of one booking, each under the booking's lock, number its events
// without a gap; an undone transaction leaves neither event nor number.
func TestEventsOfABookingAreNumberedWithoutGaps(t *testing.T) {
	t.Parallel()
	ctx, pool := context.Background(), bookingtest.Pool(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{})
	var id uuid.UUID
	err := pool.QueryRow(ctx, `
		INSERT INTO booking (showtime_id, booking_id, hold_id, scope_id, customer_id, session_id, room_id, seats, seat_count, amount, currency)
		VALUES ('show', gen_random_uuid(), gen_random_uuid(), 'show', 'ana', gen_random_uuid(), 'room', '{A1}', 1, 100, 'EUR')
		RETURNING booking_id`).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	undo := errors.New("undo")
	write := func(fail error) error {
		return booking.InTx(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT FROM booking WHERE booking_id = $1 FOR UPDATE`, id); err != nil {
				return err
			}
			_, err := Write(ctx, tx, Event{Type: BookingFailed, BookingID: id, ShowtimeID: "show", Seats: []string{"A1"}, Reason: "hold-expired"})
			return errors.Join(err, fail)
		})
	}
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			<-gate
			var fail error
			if i%4 == 0 {
				fail = undo
			}
			if err := write(fail); !errors.Is(err, fail) {
				t.Error(err)
			}
		})
	}
	close(gate)
	wg.Wait()
	rows, err := pool.Query(ctx, `SELECT payload FROM outbox ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		t.Fatal(err)
	}
	var seqs []int
	for _, p := range payloads {
		var e Event
		if err := json.Unmarshal(p, &e); err != nil {
			t.Fatal(err)
		}
		if e.BookingID != id || e.Reason != "hold-expired" || e.ID == uuid.Nil || e.OccurredAt.IsZero() {
			t.Errorf("payload %s", p)
		}
		seqs = append(seqs, e.Seq)
	}
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; !slices.Equal(seqs, want) {
		t.Errorf("numbers %v", seqs)
	}
}
