package sandboxhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"usher/booking/payment"
	"usher/booking/payment/sandbox"
)

// delivery is work that outlives a request: a callback to bring, or (event "") a
// late payment to take first.
type delivery struct{ paymentID, eventID string }

// undelivered is what a restart finds unfinished.
func (s *Server) undelivered() (out []delivery) {
	for _, r := range s.book.all() {
		if r.State == string(payment.StatusProcessing) {
			out = append(out, delivery{paymentID: r.ID})
		}
		for _, e := range r.Events {
			if !e.Done {
				out = append(out, delivery{r.ID, e.ID})
			}
		}
	}
	return out
}

// deliver leaves d to Run. Work that a stop cuts short is found again by
// undelivered after a restart with the same file.
func (s *Server) deliver(d delivery) {
	s.mu.Lock()
	s.backlog = append(s.backlog, d)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Idle tells whether every callback has been brought or given up, and no late
// payment is waiting: tests wait for it.
func (s *Server) Idle() bool { return len(s.undelivered()) == 0 }

func (s *Server) work(ctx context.Context, d delivery) {
	if d.eventID == "" {
		s.takeLate(ctx, d.paymentID)
		return
	}
	s.deliverEvent(ctx, d)
}

// addEvent appends the callback that tells the record's present state.
func addEvent(r *record, now time.Time, copies int) error {
	body, err := json.Marshal(sandbox.Event{Type: "payment." + r.State, CreatedAt: now.UTC(), Payment: r.Payment})
	if err != nil {
		return fmt.Errorf("sandboxhttp: event: %w", err)
	}
	r.Events = append(r.Events, event{ID: newID("evt_"), Body: body, Copies: copies})
	return nil
}

func (s *Server) takeLate(ctx context.Context, id string) {
	rec, err := s.book.change(id, s.opts.Now(), func(*record) error { return nil })
	if err != nil || rec.State != string(payment.StatusProcessing) {
		return
	}
	if !pause(ctx, rec.LateAt.Sub(s.opts.Now())) {
		return
	}
	rec, err = s.book.change(id, s.opts.Now(), func(r *record) error {
		if r.State != string(payment.StatusProcessing) {
			return nil
		}
		r.State, r.CapturedAmount = string(payment.StatusPaid), r.Amount
		return addEvent(r, s.opts.Now(), 1)
	})
	if err != nil {
		s.log.Error("late payment", "payment", id, "err", err)
		return
	}
	for _, e := range rec.Events {
		if !e.Done {
			s.deliverEvent(ctx, delivery{id, e.ID})
		}
	}
}

// deliverEvent brings the event's copies in parallel, each until it is taken.
func (s *Server) deliverEvent(ctx context.Context, d delivery) {
	rec, err := s.book.change(d.paymentID, s.opts.Now(), func(*record) error { return nil })
	if err != nil {
		return
	}
	var ev *event
	for i := range rec.Events {
		if rec.Events[i].ID == d.eventID {
			ev = &rec.Events[i]
		}
	}
	if ev == nil || ev.Done {
		return
	}
	taken := make(chan bool, max(1, ev.Copies))
	for range cap(taken) {
		go func() { taken <- s.bring(ctx, rec.CallbackURL, ev.ID, ev.Body) }()
	}
	all := true
	for range cap(taken) {
		all = <-taken && all
	}
	if !all {
		if ctx.Err() == nil {
			s.log.Warn("callback given up", "payment", d.paymentID, "event", ev.ID)
		} else {
			return // a restart tries again
		}
	}
	_, err = s.book.change(d.paymentID, s.opts.Now(), func(r *record) error {
		events := make([]event, len(r.Events)) // not in place: copies of the record share the slice
		copy(events, r.Events)
		for i := range events {
			if events[i].ID == d.eventID {
				events[i].Done = true
			}
		}
		r.Events = events
		return nil
	})
	if err != nil {
		s.log.Error("callback done", "payment", d.paymentID, "err", err)
	}
}

// bring posts one delivery until a 2xx, with growing pauses.
func (s *Server) bring(ctx context.Context, to, id string, body []byte) bool {
	wait := s.opts.DeliverPause
	for attempt := 1; ; attempt++ {
		err := s.post(ctx, to, id, body)
		if err == nil {
			return true
		}
		if ctx.Err() != nil || attempt >= s.opts.DeliverAttempts {
			return false
		}
		s.log.Info("callback not taken", "event", id, "attempt", attempt, "err", err)
		if !pause(ctx, wait) {
			return false
		}
		wait = min(2*wait, 64*s.opts.DeliverPause)
	}
}

func (s *Server) post(ctx context.Context, to, id string, body []byte) error {
	now := s.opts.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("sandboxhttp: callback: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(sandbox.HeaderID, id)
	req.Header.Set(sandbox.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(sandbox.HeaderSignature, sandbox.Sign(s.opts.Secret, id, now, body))
	res, err := s.opts.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("sandboxhttp: callback: %w", err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 16<<10))
	_ = res.Body.Close()
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("sandboxhttp: callback: status %d", res.StatusCode)
	}
	return nil
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
