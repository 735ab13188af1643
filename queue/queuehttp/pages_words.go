package queuehttp

import (
	"time"

	"usher/internal/pagehttp"
)

// words puts numbers into sentences, as room.js does for the same messages.
type words struct{ t *pagehttp.Text }

func (w words) count(id string, n int) string {
	s, err := w.t.N(id, n)
	if err != nil {
		return w.t.Number(n)
	}
	return s
}

func (w words) ahead(n int) string {
	if n == 0 {
		return w.t.Must("w.next")
	}
	return w.count("w.ahead", n)
}

// wait tells the range as people say it: whole minutes, then whole hours, the
// low end rounded down and the high end up, so that rounding breaks no promise.
func (w words) wait(eta *etaDoc) string {
	if eta == nil {
		return w.t.Must("w.wait.unknown")
	}
	if eta.HighSeconds <= 60 {
		return w.t.Must("w.wait.under")
	}
	low, high := max(1, eta.LowSeconds/60), (eta.HighSeconds+59)/60
	if high <= 90 {
		return w.span("w.wait.minutes", low, high)
	}
	if low < 60 {
		return w.t.Must("w.wait.mixed", "Low", w.t.Number(low), "High", w.t.Number((high+59)/60))
	}
	return w.span("w.wait.hours", low/60, (high+59)/60)
}

func (w words) span(id string, low, high int) string {
	if low >= high {
		return w.count(id, high)
	}
	return w.t.Must(id+"-range", "Low", w.t.Number(low), "High", w.t.Number(high))
}

// left tells what is still on sale. "Sold out" is said only when the box office
// says that every seat is booked: seats that others hold may come back.
func (w words) left(i inventoryDoc) string {
	switch {
	case i.SoldOut:
		return w.t.Must("w.left.sold")
	case i.Available == nil:
		return w.t.Must("w.left.unknown")
	case *i.Available == 0:
		return w.t.Must("w.left.none")
	case i.Total != nil && *i.Total >= *i.Available:
		return w.t.Must("w.left-of", "Count", w.t.Number(*i.Available), "Total", w.t.Number(*i.Total))
	}
	return w.count("w.left", *i.Available)
}

// called tells the time left in words that change once a minute: nobody needs
// to hear a number tick.
func (w words) called(left time.Duration) string {
	if left < 30*time.Second {
		return w.t.Must("w.called.seconds")
	}
	return w.count("w.called.minutes", max(1, int((left+30*time.Second)/time.Minute)))
}
