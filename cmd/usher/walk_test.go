package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"usher/internal/axetest"
)

// screens is where the walks leave their pictures; git ignores it.
const screens = "../../.screens"

// TestWalk is the job the program exists for, in a browser: from the waiting page
// through the map and the payment to the ticket.
func TestWalk(t *testing.T) {
	_, at := startDev(t, nil)

	t.Run("phone", func(t *testing.T) {
		w := openWindow(t, 390, 844)
		w.open(at.Edge + "/rooms/cinema?lang=en")
		w.shot("1-waiting")
		w.comeIn(at.Booking + "/book/cinema")
		w.shot("2-map")

		w.tapSeat("F5")
		w.tapSeat("F6")
		w.until(`document.querySelectorAll('.chip').length === 2`)

		// B17: what somebody else takes meanwhile is told, and the rest stays chosen.
		rival := admit(t, at.Edge, at.Booking, "cinema", "a-rival-of-the-walk")
		show := showtime(t, at.Booking, "cinema")
		call(t, 201, "POST", at.Booking+"/v1/showtimes/"+show+"/holds", rival.session, `{"seats":["F6"]}`)
		w.until(`document.querySelector('.notice').innerText.includes('F6')`)
		w.until(`document.querySelectorAll('.chip').length === 1`)
		w.shot("3-just-taken")

		w.tapSeat("F7")
		w.press("#hold")
		w.until(`document.querySelector('#pay')`)
		w.shot("4-hold")

		// B8: a reload neither loses the seats nor winds the clock up again.
		held := w.text(`Usher.shop.hold.holdId + ' ' + Usher.shop.hold.expiresAt`)
		w.open(at.Booking + "/book/cinema")
		w.until(`document.querySelector('#pay')`)
		if again := w.text(`Usher.shop.hold.holdId + ' ' + Usher.shop.hold.expiresAt`); again != held {
			t.Errorf("after a reload the hold is %s, it was %s", again, held)
		}

		w.press("#pay")
		w.until(`location.href.startsWith('` + at.Sandbox + `/pay/')`)
		w.shot("5-payment")
		w.press("button[value=paid]")
		w.ticket(at.Booking, 2)
		w.shot("6-ticket")
	})

	t.Run("phone_declined_then_paid", func(t *testing.T) {
		w := openWindow(t, 390, 844)
		w.open(at.Edge + "/rooms/stadium?lang=pt-BR")
		w.comeIn(at.Booking + "/book/stadium")
		w.shot("7-stadium")
		w.js(`(Usher.shop.map.showSection(Usher.shop.hall.sections.get('K')), true)`)
		w.until(`document.querySelectorAll('[data-drawn=K] [data-seat]').length > 100`)
		w.shot("8-section")

		// The box office chooses: two beside each other.
		w.press("#best")
		w.until(`document.querySelector('#pay')`)
		if n := w.text(`String(Usher.shop.hold.seats.length)`); n != "2" {
			t.Fatalf("best available gave %s seats, not 2", n)
		}
		w.press("#pay")
		w.until(`document.querySelector('button[value=declined]')`)
		w.press("button[value=declined]")
		w.until(`document.querySelector('#booking')?.dataset.show === 'declined'`)
		w.shot("9-declined")
		w.press("#retry")
		w.until(`document.querySelector('button[value=paid]')`)
		w.press("button[value=paid]")
		w.ticket(at.Booking, 2)
		if lang := w.text(`document.documentElement.lang`); lang != "pt-BR" {
			t.Errorf("the ticket is in %q", lang)
		}
	})

	t.Run("desktop_keyboard_only", func(t *testing.T) {
		w := openWindow(t, 1280, 800)
		w.open(at.Edge + "/rooms/last-seats?lang=es")
		w.until(`location.href.includes('/book/') || document.querySelector('#enter button')?.offsetParent`)
		if !strings.Contains(w.text(`location.href`), "/book/") {
			w.tabTo(`closest('#enter')`)
			w.key("\r")
		}
		w.until(`location.href === '` + at.Booking + `/book/last-seats' && window.Usher?.shop`)
		// The map is one stop; arrows go to the neighbour, Space chooses.
		w.tabTo(`dataset?.seat`)
		from := w.text(`document.activeElement.dataset.seat`)
		w.key(kb.ArrowDown)
		below := w.text(`document.activeElement.dataset.seat`)
		if from[0] != 'A' || below[0] != 'B' {
			t.Errorf("down from %s is %s, not the row behind", from, below)
		}
		w.key(kb.ArrowRight)
		if beside := w.text(`document.activeElement.dataset.seat`); beside[0] != 'B' || beside == below {
			t.Errorf("right of %s is %s, not its neighbour", below, beside)
		}
		if label := w.text(`document.activeElement.getAttribute('aria-label')`); !strings.Contains(label, "Fila B asiento 2") || !strings.Contains(label, "libre") {
			t.Errorf("the seat's label is %q", label)
		}
		w.key(" ")
		w.until(`document.activeElement.getAttribute('aria-checked') === 'true' && document.querySelectorAll('.chip').length === 1`)
		w.key(" ")
		w.until(`document.querySelectorAll('.chip').length === 0`)

		w.tabTo(`id === 'tab-map'`)
		w.key(kb.ArrowRight)
		w.tabTo(`classList.contains('list-seat')`)
		w.key(" ")
		w.until(`document.querySelectorAll('.list-seat.picked').length === 1`)
		w.shot("10-list")
		w.tabTo(`id === 'hold'`)
		w.key("\r")
		w.until(`document.activeElement.id === 'pay'`)
		w.key("\r")
		w.until(`location.href.startsWith('` + at.Sandbox + `/pay/')`)
		w.tabTo(`value === 'paid'`)
		w.key("\r")
		w.ticket(at.Booking, 1)
		w.shot("11-ticket-keyboard")
	})

	t.Run("mishaps", func(t *testing.T) { mishaps(t, at) })

	if out, code := usher(t, nil, "audit", "--postgres-url", at.PostgresURL); code != 0 {
		t.Errorf("the audit after the walks: %s", out)
	}
}

// window is one fan's browser: a profile of its own, so a cookie jar of its own.
type window struct {
	t             *testing.T
	ctx           context.Context
	width, height int64
}

func openWindow(t *testing.T, width, height int64) *window {
	t.Helper()
	w := &window{t: t, ctx: chromium(t), width: width, height: height}
	w.dress("light", width, height)
	w.listen()
	return w
}

// chromium starts a browser. A machine without one fails the test: a walk that
// was skipped would look like a walk that went well.
func chromium(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("no Chromium on PATH: the walk needs one (make deps installs it)")
	}
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.UserDataDir(t.TempDir()),
	}
	for _, flag := range []string{"disable-gpu", "disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage", "hide-scrollbars"} {
		opts = append(opts, chromedp.Flag(flag, true))
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc, chromedp.WithLogf(t.Logf))
	ctx, timeout := context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(func() { timeout(); cancel(); stop() })
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return ctx
}

// listen fails the test for every exception of a page's script and every breach
// of the security policy: both would go unseen otherwise.
func (w *window) listen() {
	ctx, cancel := context.WithCancel(w.ctx)
	messages := chromedp.Console(ctx)
	done := make(chan struct{})
	var heard []string
	go func() {
		defer close(done)
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Source == "security" || m.Type == chromedp.ConsoleError && m.Source != "network" {
				heard = append(heard, m.String())
			}
		}
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
		for _, m := range heard {
			w.t.Errorf("the browser complains: %s", m)
		}
	})
}

func (w *window) do(steps ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	if err := chromedp.Do(w.ctx, steps...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *window) open(url string) { w.t.Helper(); w.do(chromedp.Navigate(url)) }

func (w *window) js(expression string) bool {
	w.t.Helper()
	v, err := chromedp.Run(w.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
	if err != nil {
		w.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

func (w *window) text(expression string) string {
	w.t.Helper()
	v, err := chromedp.Run(w.ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		w.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression to be true, across loads of the page.
func (w *window) until(expression string) {
	w.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(40 * time.Millisecond) {
		// An error is a page on its way out.
		if ok, err := chromedp.Run(w.ctx, chromedp.Evaluate[bool]("!!("+expression+")")); err == nil && ok {
			return
		}
		if time.Now().After(deadline) {
			where, _ := chromedp.Run(w.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
			w.t.Fatalf("never true: %s\nat %.2000s", expression, where)
		}
	}
}

func (w *window) press(selector string) {
	w.t.Helper()
	w.do(chromedp.WaitVisible(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector)))
}

func (w *window) key(keys string) { w.t.Helper(); w.do(chromedp.KeyEvent(keys)) }

// tabTo presses Tab until the focused element is the one: whoever has only a
// keyboard must be able to get there, and in reasonable time.
func (w *window) tabTo(is string) {
	w.t.Helper()
	for range 60 {
		w.key("\t")
		if w.js(`document.activeElement.` + is) {
			return
		}
	}
	w.t.Fatalf("60 times Tab do not reach %s; focus is on %s", is, w.text(`document.activeElement.outerHTML.slice(0, 300)`))
}

// comeIn waits to be called and goes in; the page takes the fan in by itself
// after a moment, which is as good.
func (w *window) comeIn(shop string) {
	w.t.Helper()
	w.until(`location.href.includes('/book/') || document.querySelector('#enter button')?.offsetParent`)
	_ = chromedp.Do(w.ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector('#enter button')?.click()`))
	w.until(`location.href === '` + shop + `' && window.Usher?.shop`)
}

// tapSeat touches the map where the seat is drawn, as a finger does. Where seats
// are too small to aim at, the first touch comes closer and the second one chooses.
func (w *window) tapSeat(code string) {
	w.t.Helper()
	seat := `document.querySelector('[data-seat="` + code + `"]')`
	chosen := seat + `.getAttribute('aria-checked') === 'true'`
	for range 3 {
		at, err := chromedp.Run(w.ctx, chromedp.Evaluate[[]float64](
			`(() => { const b = `+seat+`.querySelector('.body').getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2] })()`))
		if err != nil {
			w.t.Fatal(err)
		}
		w.do(chromedp.MouseClickXY(at[0], at[1]))
		for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(40 * time.Millisecond) {
			if w.js(chosen) {
				return
			}
			if w.js(`Math.abs(` + seat + `.getBoundingClientRect().x + ` + seat + `.getBoundingClientRect().width / 2 - ` + fmt.Sprint(at[0]) + `) > 3`) {
				break // it has moved: the map came closer
			}
		}
	}
	w.t.Fatalf("three touches do not choose seat %s", code)
}

// ticket waits for the tickets and looks at each QR code: drawn, not just linked.
func (w *window) ticket(booking string, n int) {
	w.t.Helper()
	w.until(`location.href.startsWith('` + booking + `/bookings/') && document.querySelectorAll('article.ticket').length === ` + fmt.Sprint(n))
	w.until(`[...document.querySelectorAll('.qr img')].length === ` + fmt.Sprint(n) + ` && [...document.querySelectorAll('.qr img')].every((i) => i.complete && i.naturalWidth > 0)`)
}

func (w *window) dress(scheme string, width, height int64) {
	w.t.Helper()
	_, err := chromedp.Call(w.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	scale := 1.0
	if width < 600 {
		scale = 2
	}
	w.do(chromedp.EmulateViewport(width, height, chromedp.EmulateScale(scale)))
}

// shot leaves four pictures of a step, phone and desktop, light and dark, and
// looks for the commonest accident of a small screen on the way.
func (w *window) shot(name string) {
	w.t.Helper()
	if err := os.MkdirAll(screens, 0o750); err != nil {
		w.t.Fatal(err)
	}
	for _, size := range [][2]int64{{320, 640}, {390, 844}, {1280, 800}} {
		for _, scheme := range []string{"light", "dark"} {
			w.dress(scheme, size[0], size[1])
			if !w.js(`document.documentElement.scrollWidth <= innerWidth`) {
				w.t.Errorf("%s scrolls sideways at %d px", name, size[0])
			}
			if size[0] == 390 && axetest.Installed() {
				axetest.Check(w.t, w.ctx, name+" "+scheme)
			}
			if size[0] == 320 {
				break
			}
			w.do(chromedp.Sleep(120 * time.Millisecond)) // two frames: the map follows its new size
			data, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				w.t.Fatal(err)
			}
			file := filepath.Join(screens, fmt.Sprintf("walk-%s-%d-%s.png", name, size[0], scheme))
			if err := os.WriteFile(file, data, 0o600); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	w.dress("light", w.width, w.height)
}
