package booking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"usher/booking/bookingtest"
)

// machine walks holds through their life beside a model: a map from seat to the
// index of the hold that has it, booked or not.
type machine struct {
	pool  *pgxpool.Pool
	of    *Office
	fans  []Session
	show  string
	seats []string

	owner  map[string]int // seat → index in holds
	booked map[string]bool
	holds  []Hold
	state  []string
}

// TestTheHoldsMachine: hold, release, expire and confirm in any order leave every
// seat with the owner the model says, and give each caller the model's answer.
func TestTheHoldsMachine(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	bookingtest.Seed(t, pool, bookingtest.Hall{Rows: 1, PerRow: 6, Limit: 4, Showtime: "template"})
	of := office(t, pool)
	fans := fansOf(t, pool, 3)
	walks := 0
	rapid.Check(t, func(rt *rapid.T) {
		walks++
		m := &machine{
			pool: pool, of: of, fans: fans, show: fmt.Sprintf("walk-%d", walks),
			owner: map[string]int{}, booked: map[string]bool{},
		}
		m.seats = bookingtest.Seed(t, pool, bookingtest.Hall{Rows: 1, PerRow: 6, Limit: 4, Showtime: m.show})
		rt.Repeat(map[string]func(*rapid.T){
			"hold": m.hold, "release": m.release, "expire": m.expire, "confirm": m.confirm, "sweep": m.sweep, "": m.check,
		})
	})
}

func (m *machine) hold(t *rapid.T) {
	who := rapid.IntRange(0, 2).Draw(t, "fan")
	want := rapid.SliceOfNDistinct(rapid.SampledFrom(m.seats), 1, 3, rapid.ID[string]).Draw(t, "seats")
	slices.Sort(want)
	h, created, err := m.of.Hold(context.Background(), m.fans[who], HoldRequest{ShowtimeID: m.show, Seats: want})
	var taken, yours []string
	same := -1
	for _, s := range want {
		if i, ok := m.owner[s]; ok {
			if same = i; m.holds[i].Customer == m.fans[who].Customer && !m.booked[s] {
				yours = append(yours, s)
			} else {
				taken = append(taken, s)
			}
		}
	}
	mine := same >= 0 && m.holds[same].Customer == m.fans[who].Customer && slices.Equal(m.holds[same].Seats, want) && !m.booked[want[0]]
	have := 0
	for _, i := range m.owner {
		if m.holds[i].Customer == m.fans[who].Customer && m.state[i] == HoldOpen {
			have++
		}
	}
	var lost *SeatsError
	switch {
	case mine:
		if err != nil || created || h.ID != m.holds[same].ID {
			t.Fatalf("the same seats again: %+v created %v, %v", h, created, err)
		}
	case len(taken)+len(yours) > 0:
		if !errors.As(err, &lost) || !slices.Equal(lost.Seats, taken) || !slices.Equal(lost.Yours, yours) {
			t.Fatalf("%v are taken and %v the fan's own: %v", taken, yours, err)
		}
	case have+len(want) > 4:
		if !errors.Is(err, ErrTicketLimit) {
			t.Fatalf("%d held and %d more: %v", have, len(want), err)
		}
	default:
		if err != nil || !created {
			t.Fatalf("free seats: created %v, %v", created, err)
		}
		m.holds, m.state = append(m.holds, h), append(m.state, HoldOpen)
		for _, s := range want {
			m.owner[s] = len(m.holds) - 1
		}
	}
}

// any draws a hold of the walk; a walk without one skips the step.
func (m *machine) any(t *rapid.T) int {
	if len(m.holds) == 0 {
		t.Skip("no hold yet")
	}
	return rapid.IntRange(0, len(m.holds)-1).Draw(t, "hold")
}

func (m *machine) release(t *rapid.T) {
	i := m.any(t)
	session := m.fans[slices.IndexFunc(m.fans, func(s Session) bool { return s.Customer == m.holds[i].Customer })]
	err := m.of.ReleaseHold(context.Background(), session, m.holds[i].ID)
	switch m.state[i] {
	case HoldConfirmed:
		if !errors.Is(err, ErrHoldNotOpen) {
			t.Fatalf("releasing a booking: %v", err)
		}
	case HoldOpen:
		m.end(i, HoldReleased)
		fallthrough
	default:
		if err != nil {
			t.Fatalf("release: %v", err)
		}
	}
}

func (m *machine) end(i int, state string) {
	m.state[i] = state
	for s, owner := range m.owner {
		if owner == i {
			delete(m.owner, s)
		}
	}
}

func (m *machine) expire(t *rapid.T) {
	i := m.any(t)
	if m.state[i] != HoldOpen {
		t.Skip("it is over")
	}
	m.exec(t, `WITH h AS (UPDATE hold SET expires_at = clock_timestamp() WHERE hold_id = $1 RETURNING hold_id, expires_at)
		UPDATE show_seat s SET hold_expires_at = h.expires_at FROM h WHERE s.showtime_id = $2 AND s.hold_id = h.hold_id`, m.holds[i].ID, m.show)
	m.end(i, HoldExpired)
}

// confirm does to the rows what a payment does.
func (m *machine) confirm(t *rapid.T) {
	i := m.any(t)
	if m.state[i] != HoldOpen {
		t.Skip("it is over")
	}
	m.exec(t, `WITH h AS (UPDATE hold SET state = 'CONFIRMED' WHERE hold_id = $1 RETURNING hold_id)
		UPDATE show_seat s SET status = 'BOOKED', booking_id = h.hold_id, hold_expires_at = NULL FROM h
		 WHERE s.showtime_id = $2 AND s.hold_id = h.hold_id`, m.holds[i].ID, m.show)
	m.state[i] = HoldConfirmed
	for _, s := range m.holds[i].Seats {
		m.booked[s] = true
	}
}

func (m *machine) sweep(t *rapid.T) {
	if _, _, err := m.of.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) exec(t *rapid.T, sql string, args ...any) {
	if _, err := m.pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) check(t *rapid.T) {
	states, err := m.of.statesNow(context.Background(), m.show)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range m.seats {
		want := seatFree
		if _, ok := m.owner[s]; ok {
			want = seatHeld
		}
		if m.booked[s] {
			want = seatBooked
		}
		if states[s] != want {
			t.Fatalf("%s is %s, want %s", s, states[s], want)
		}
	}
	for i, h := range m.holds {
		got, err := m.of.GetHold(context.Background(), Session{Customer: h.Customer}, h.ID)
		if err != nil || got.State != m.state[i] {
			t.Fatalf("hold %d reads %s (%v), want %s", i, got.State, err, m.state[i])
		}
	}
}
