package queuehttp

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"usher/queue/returnto"
)

// shopSite is an integrator's site on another port of this machine: another origin, the
// same site. It takes note of what is posted to it.
type shopSite struct {
	*httptest.Server
	mu     sync.Mutex
	posted []url.Values
}

func newShopSite(t *testing.T, edge func() string) *shopSite {
	t.Helper()
	s := &shopSite{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_ = r.ParseForm()
			s.mu.Lock()
			s.posted = append(s.posted, r.PostForm)
			s.mu.Unlock()
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		// A strict policy of its own must not break the snippet.
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src "+edge()+" 'sha256-0'; connect-src "+edge())
		if strings.HasPrefix(r.URL.Path, "/server") {
			_, _ = io.WriteString(w, "<!doctype html><title>Server side</title><h1>By the server</h1>")
			return
		}
		_, _ = fmt.Fprintf(w, `<!doctype html><title>Shop</title><script src="%s/usher.js" data-room="hall"></script><h1>Tickets</h1>`, edge())
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *shopSite) got() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]url.Values(nil), s.posted...)
}

const unhidden = `document.title === "Shop" && document.documentElement.style.visibility === "" && window.usher`

func TestThePageBehindTheSnippet(t *testing.T) {
	t.Parallel()
	var list []returnto.Entry
	var h *house
	base := func() string { return h.base }
	shop, stranger := newShopSite(t, base), newShopSite(t, base)
	list = []returnto.Entry{{URL: shop.URL + "/tickets", Handover: returnto.Cookie}, {URL: shop.URL + "/server"}}
	h = newHouseWith(t, 0, 5, func(o *Options) { o.Returns = func(string) []returnto.Entry { return list } })
	ctx := browser(t)
	// chromedp.Navigate waits for a load that never comes of a page that sends the fan on.
	visit := func(to string) { js[string](t, ctx, fmt.Sprintf("location.href = %q", to)) }
	page := shop.URL + "/tickets/7?a=1|2#row"
	visit(page)
	until(t, ctx, visible("waiting")+" && "+place+` === "1"`) // blocked: in the waiting room instead
	visit(page)                                               // again: the same place
	until(t, ctx, visible("waiting")+" && "+place+` === "1"`)
	h.set("open", 6000, 5)
	until(t, ctx, unhidden) // came back by itself
	if at := js[string](t, ctx, "location.href"); at != shop.URL+"/tickets/7?a=1%7C2#row" {
		t.Errorf("came back to %s", at)
	}
	doc := js[bool](t, ctx, `(usher.admitted.then(() => usher.pass()).then((p) => { window.got = p; }), true)`)
	until(t, ctx, `window.got`)
	if got := js[string](t, ctx, `got.pass.split(".").length + " " + (got.binding.length > 20) + " " + usher.room`); !doc || got != "3 true hall" {
		t.Errorf("the page got %s", got)
	}
	do(t, ctx, chromedp.Reload())
	until(t, ctx, unhidden)
	if n := len(shop.got()); n != 0 {
		t.Errorf("%d forms came to an address that takes none", n)
	}
	// By the server: the pass comes as a form.
	do(t, ctx, chromedp.Navigate(h.base+"/rooms/hall?return="+url.QueryEscape(shop.URL+"/server/take?x=1")))
	until(t, ctx, visible("admitted"))
	do(t, ctx, chromedp.Click(`div[data-for="admitted"] .js-enter button`))
	until(t, ctx, `document.title === "Server side" && location.search === "?x=1"`)
	if got := shop.got(); len(got) != 1 || got[0].Get("pass") == "" || got[0].Get("binding") == "" || got[0].Get("room") != "hall" {
		t.Errorf("the server got %v", got)
	}
	// An origin that is not listed learns nothing, although this browser is inside.
	visit(stranger.URL + "/tickets")
	until(t, ctx, `location.origin === "`+h.base+`" && `+visible("admitted"))
	if !js[bool](t, ctx, `!document.querySelector('[data-banner="return"]').hidden`) {
		t.Error("the unlisted way back is not told")
	}
}
