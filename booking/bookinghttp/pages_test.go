package bookinghttp

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/booking"
	"usher/booking/payment"
	"usher/internal/pagehttp"
)

// testPages are the pages alone, without stores behind them.
func testPages(t *testing.T) *pages {
	t.Helper()
	kit, err := pagehttp.New(pagehttp.Options{Files: pageFiles})
	if err != nil {
		t.Fatal(err)
	}
	return &pages{Server: &Server{opts: Options{EdgeURL: "http://edge.test"}}, kit: kit}
}

// TestPagesAreSmall keeps the promise of a page that opens on a phone in a crowd.
func TestPagesAreSmall(t *testing.T) {
	t.Parallel()
	var whole bytes.Buffer
	names, err := fs.Glob(pageFiles, "static/*")
	if err != nil || len(names) == 0 {
		t.Fatalf("static files: %v %v", names, err)
	}
	total := 0
	for _, name := range names {
		if ext := path.Ext(name); ext != ".js" && ext != ".css" {
			continue
		}
		data, err := fs.ReadFile(pageFiles, name)
		if err != nil {
			t.Fatal(err)
		}
		whole.Reset()
		z := gzip.NewWriter(&whole)
		_, _ = z.Write(data)
		_ = z.Close()
		total += whole.Len()
	}
	t.Logf("scripts and styles: %d bytes gzipped", total)
	if total > 60_000 {
		t.Errorf("scripts and styles are %d bytes gzipped, more than 60,000", total)
	}
}

// TestStaticFilesFitThePolicy finds what the content security policy would
// block silently: the page would lose its colours or its script in production only.
func TestStaticFilesFitThePolicy(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(pageFiles, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(pageFiles, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{" style=", "<style", "onclick=", "onload=", "<script>", "javascript:", "http://", "https://"} {
			if strings.Contains(string(data), bad) {
				t.Errorf("%s contains %q", name, bad)
			}
		}
	}
}

func TestWhatABookingShows(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 20, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name      string
		b         payment.Booking
		show, why string
	}{
		{"M4_asked", payment.Booking{State: "PENDING", Payment: payment.Payment{State: "PENDING"}, HoldExpiresAt: now.Add(time.Minute)}, showChecking, ""},
		{"M4_no_answer_yet", payment.Booking{State: "PENDING", Payment: payment.Payment{State: "PENDING"}, HoldExpiresAt: now.Add(-time.Minute)}, showChecking, ""},
		{"M3_declined", payment.Booking{State: "PENDING", Payment: payment.Payment{State: "FAILED"}, HoldExpiresAt: now.Add(time.Minute)}, showDeclined, ""},
		{"declined_too_late", payment.Booking{State: "PENDING", Payment: payment.Payment{State: "FAILED"}, HoldExpiresAt: now.Add(-time.Second)}, showFailed, "declined"},
		{"M5_late", payment.Booking{State: "FAILED", Reason: payment.ReasonSeatsResold, Payment: payment.Payment{State: "REFUND_DUE"}}, showFailed, "late"},
		{"M5_late_returned", payment.Booking{State: "FAILED", Reason: payment.ReasonHoldExpired, Payment: payment.Payment{State: "REFUNDED"}}, showFailed, "late"},
		{"expired_unpaid", payment.Booking{State: "FAILED", Reason: payment.ReasonHoldExpired, Payment: payment.Payment{State: "PENDING"}}, showFailed, "expired"},
		{"wrong_amount", payment.Booking{State: "FAILED", Reason: payment.ReasonAmountMismatch, Payment: payment.Payment{State: "REFUND_DUE"}}, showFailed, "other"},
		{"confirmed", payment.Booking{State: "CONFIRMED"}, showTickets, ""},
		{"refunded", payment.Booking{State: "REFUNDED"}, showRefunded, ""},
	} {
		show, why := whatToShow(tt.b, now)
		if show != tt.show || why != tt.why {
			t.Errorf("%s: shows %q because %q, want %q because %q", tt.name, show, why, tt.show, tt.why)
		}
	}
}

// TestEveryBookingPageRenders goes through all languages and everything a
// booking page can show: a message that exists only for the happy path fails here.
func TestEveryBookingPageRenders(t *testing.T) {
	t.Parallel()
	p := testPages(t)
	base := payment.Booking{
		ID: "0192f0c1-2222-7333-8444-0123456789ab", ShowtimeID: "s", HoldID: "h", Currency: "EUR", Amount: 2900, Seats: []string{"F5", "F6"},
		Showtime: payment.ShowtimeInfo{Title: "The <Salt> Road", Venue: "Lantern House", City: "Porto", Timezone: "Europe/Lisbon", Room: "cinema", StartsAt: time.Date(2026, 7, 1, 19, 0, 0, 0, time.UTC)},
		Payment:  payment.Payment{ID: "p", State: "PENDING", URL: "http://pay.test/pay/p"},
	}
	states := map[string]func(b *payment.Booking){
		showChecking: func(*payment.Booking) {},
		showDeclined: func(b *payment.Booking) {
			b.Payment.State, b.HoldExpiresAt = "FAILED", time.Now().Add(time.Hour)
		},
		showFailed:   func(b *payment.Booking) { b.State, b.Reason = "FAILED", payment.ReasonHoldExpired },
		showRefunded: func(b *payment.Booking) { b.State, b.RefundedAmount = "REFUNDED", 2900 },
		showTickets: func(b *payment.Booking) {
			b.State = "CONFIRMED"
			b.Tickets = []payment.Ticket{{ID: "t1", SeatCode: "F5", Section: "Hall", Row: "F", Seat: "5", PriceClass: "Premium", Amount: 1450, State: "VALID"}, {ID: "t2", SeatCode: "GA-0001", Section: "Standing", Standing: true, State: "REFUNDED"}}
		},
	}
	for show, change := range states {
		for _, l := range pagehttp.Langs {
			b := base
			change(&b)
			app := fiber.New()
			app.Get("/", func(c *fiber.Ctx) error {
				return p.kit.Render(c, pagehttp.View{Page: "booking", Data: p.bookingView(p.kit.Text(c), b, time.Now())})
			})
			body := fetch(t, app, "/?lang="+l.Code, 200)
			want := []string{`data-show="` + show + `"`, `lang="` + l.Code + `"`, "The &lt;Salt&gt; Road"}
			if show == showTickets {
				want = append(want, "/v1/bookings/"+b.ID+"/tickets/t1/qr.svg")
			} else {
				want = append(want, "F6")
			}
			for _, w := range want {
				if !strings.Contains(body, w) {
					t.Errorf("%s in %s: no %q", show, l.Code, w)
				}
			}
			if strings.Contains(body, "no value") {
				t.Errorf("%s in %s: a message lacks a value", show, l.Code)
			}
			// 19:00 UTC in July is 20:00 in Lisbon, whatever the server's zone is.
			if !strings.Contains(body, "20:00") && !strings.Contains(body, "8:00") {
				t.Errorf("%s in %s: the hour is not the venue's", show, l.Code)
			}
		}
	}
}

func TestShowtimeLinksNameTheDayOnlyWhenItMatters(t *testing.T) {
	t.Parallel()
	text := testPages(t).kit.Catalog.Text(pagehttp.Langs[1])
	at := time.Date(2026, 12, 21, 16, 30, 0, 0, time.UTC)
	shows := []booking.Showtime{{ID: "a", Room: "r", StartsAt: at, Timezone: "UTC"}, {ID: "b", Room: "r", StartsAt: at.Add(3 * time.Hour), Timezone: "UTC"}}
	if got := showtimeLinks(text, shows, &shows[1]); got[0].Text != "16:30" || got[0].Current || !got[1].Current {
		t.Errorf("one day: %+v", got)
	}
	shows[1].StartsAt = at.Add(24 * time.Hour)
	if got := showtimeLinks(text, shows, &shows[1]); got[0].Text != "segunda-feira, 21 de dezembro, 16:30" {
		t.Errorf("two days: %+v", got)
	}
	if chosen(shows, "nowhere") != nil || chosen(shows, "") != &shows[0] {
		t.Error("an unknown showtime must be none, and none must be the first")
	}
}
