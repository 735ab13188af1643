package main

import (
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"usher/cmd/usher/internal/app"
)

// everyDocument runs a script before those of every page from now on.
func (w *window) everyDocument(source string) {
	w.t.Helper()
	if _, err := chromedp.Call(w.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: source}); err != nil {
		w.t.Fatal(err)
	}
}

// taken counts the seats of a showtime that are not free.
func taken(t *testing.T, booking, show string) int {
	t.Helper()
	seats, _ := call(t, 200, "GET", booking+"/v1/showtimes/"+show+"/seats", "", "").doc["seats"].([]any)
	n := 0
	for _, s := range seats {
		if seat, _ := s.(map[string]any); seat["status"] != "AVAILABLE" {
			n++
		}
	}
	if len(seats) == 0 {
		t.Fatal("the showtime has no seats")
	}
	return n
}

// mishaps is what happens to fans on the way: an answer that is lost, a browser
// that keeps nothing, second thoughts on the payment page.
func mishaps(t *testing.T, at app.DevReady) {
	t.Helper()
	show := showtime(t, at.Booking, "cinema")
	before := taken(t, at.Booking, show)
	w := openWindow(t, 1280, 800)
	w.everyDocument(`for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(window, name, {get() { throw new DOMException("forbidden", "SecurityError"); }})`)
	w.open(at.Edge + "/rooms/cinema?lang=en")
	w.comeIn(at.Booking + "/book/cinema")

	// B5: the seats were found, the answer was lost, the page was loaded again: the
	// same wish finds the same seats and takes no others.
	w.js(`(window.real = fetch, window.fetch = async (url, init) => {
	  const reply = await real(url, init);
	  if (init?.method === 'POST') { window.lost = (window.lost ?? 0) + 1; throw new TypeError('lost'); }
	  return reply;
	})`)
	w.press("#best")
	w.until(`window.lost >= 2`) // by itself, with the same key
	if n := taken(t, at.Booking, show); n != before+2 {
		t.Errorf("two seats were asked for and %d are taken", n-before)
	}
	w.do(chromedp.Reload())
	w.until(`window.Usher?.shop`)
	w.press("#best")
	w.until(`document.querySelector('#pay')`)
	if n := taken(t, at.Booking, show); n != before+2 {
		t.Errorf("after a lost answer %d seats are taken, not two", n-before)
	}

	// B8: without any storage a reload finds the hold.
	held := w.text(`Usher.shop.hold.holdId`)
	w.do(chromedp.Reload())
	w.until(`document.querySelector('#pay')`)
	if again := w.text(`Usher.shop.hold.holdId`); again != held {
		t.Errorf("after a reload the hold is %s, it was %s", again, held)
	}

	// Second thoughts on the payment page: the seats can be changed.
	w.press("#pay")
	w.until(`location.href.startsWith('` + at.Sandbox + `/pay/')`)
	w.do(chromedp.NavigateBack())
	w.until(`window.Usher?.shop?.hold`)
	w.press("#change")
	w.until(`document.querySelectorAll('.chip').length === 2`)
	if n := taken(t, at.Booking, show); n != before {
		t.Errorf("after a change %d seats are still taken", n-before)
	}

	// A tab that does not know of the hold is shown it, not an error.
	w.press("#hold")
	w.until(`document.querySelector('#pay')`)
	held = w.text(`Usher.shop.hold.seats.join()`)
	w.js("(Usher.store.drop('usher-hold-" + show + "'), true)")
	w.do(chromedp.Reload())
	w.until(`window.Usher?.shop && document.querySelector('#best')`)
	w.js(`(Usher.shop.take({seats: ['` + held + `'.split(',')[0], Usher.shop.hall.seats.find((s) => s.status === 'AVAILABLE').code]}), true)`)
	w.until(`document.querySelector('#pay') && document.querySelector('.notice').innerText.includes('already hold 2 seats')`)
	if again := w.text(`Usher.shop.hold.seats.join()`); again != held {
		t.Errorf("the hold shown is of %s, it was of %s", again, held)
	}

	// Declined: the seats by their names, and the dead payment's key is gone.
	w.press("#pay")
	w.until(`document.querySelector('button[value=declined]')`)
	w.press("button[value=declined]")
	w.until(`document.querySelector('#booking')?.dataset.show === 'declined'`)
	w.until(`/Row .+ · Seat /.test(document.querySelector('.summary-seats').innerText)`)
	w.shot("12-declined-seats")
	w.press("#retry")
	w.until(`document.querySelector('button[value=paid]')`)
	w.press("button[value=paid]")
	w.ticket(at.Booking, 2)
}
