package queuehttp

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"usher/queue/customer"
)

// One browser shows a code, another one scans it: the link waits for a press, moves the
// place, and is nothing to anybody afterwards.
func TestAPlaceMovesByItsLink(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	h.fill(7)
	phone, laptop := browser(t), browser(t)
	complaints(t, phone)
	complaints(t, laptop)
	do(t, phone, chromedp.Navigate(h.base+"/rooms/hall"))
	until(t, phone, visible("waiting")+" && "+place+` === "8"`)
	dress(t, phone, "light", 390, 844, 2)
	do(t, phone, chromedp.Click(`#device summary`), chromedp.Click(`#device-form button`))
	until(t, phone, `document.getElementById("code-qr").naturalWidth > 100 && document.getElementById("code").textContent.length === 11`)
	if text := js[string](t, phone, `document.getElementById("code-until").textContent`); text == "" || strings.Contains(text, "{{") {
		t.Errorf("the code is good until %q", text)
	}
	fits(t, phone, "a code")
	screenshot(t, phone, "device-phone")
	link := js[string](t, phone, `document.getElementById("code-url").href`)

	dress(t, laptop, "light", 390, 844, 2)
	do(t, laptop, chromedp.Navigate(link))
	until(t, laptop, `document.getElementById("moveCode").value.length === 11`)
	if at := js[string](t, laptop, `location.href`); strings.Contains(at, "#") {
		t.Errorf("the code stays in the address: %s", at)
	}
	screenshot(t, laptop, "move-phone")
	if v, err := h.line.Room("hall"); err != nil || v.Waiting != 8 {
		t.Errorf("%d wait, %v", v.Waiting, err)
	}
	do(t, laptop, chromedp.Click(`#move-do`))
	until(t, laptop, visible("waiting")+" && "+place+` === "8"`)
	until(t, phone, visible("moved")) // by its own poll
	if !js[bool](t, phone, `document.querySelector('[data-for="moved"]').offsetHeight > 0`) {
		t.Error("the old device shows nothing")
	}
	dress(t, phone, "light", 390, 844, 2)
	screenshot(t, phone, "moved-phone")
	do(t, laptop, chromedp.Navigate(link)) // used
	until(t, laptop, `document.getElementById("moveCode").value.length === 11`)
	do(t, laptop, chromedp.Click(`#move-do`))
	until(t, laptop, visible("waiting")) // the same browser: the lost reply's answer, its place
	do(t, phone, chromedp.Navigate(link))
	until(t, phone, `document.getElementById("moveCode").value.length === 11`)
	do(t, phone, chromedp.Click(`#move-do`))
	until(t, phone, `document.querySelector('[role="status"]')`)
	screenshot(t, phone, "move-refused-phone")
}

func TestThePagesForWhoeverKeepsNothingAndWhoeverIsNotNamed(t *testing.T) {
	t.Parallel()
	h := newHouseWith(t, 0, 5, func(o *Options) {
		o.Customers = func(room string) Customers {
			return Customers{Trust: &customer.Trust{Issuer: "x", Keys: customer.Static{}}, Required: room == "club"}
		}
	})
	h.fill(3)
	h.room = "club"
	h.version = 0
	h.set("open", 0, 5)
	ctx := browser(t)
	complaints(t, ctx)
	for _, lang := range []string{"en", "pt-BR", "es"} {
		dress(t, ctx, "light", 390, 844, 2)
		do(t, ctx, chromedp.Navigate(h.base+"/rooms/club?lang="+lang))
		until(t, ctx, visible("known"))
		fits(t, ctx, "known "+lang)
		screenshot(t, ctx, "known-"+lang)
		do(t, ctx, chromedp.Navigate(h.base+"/rooms/hall/move?lang="+lang))
		until(t, ctx, `document.getElementById("moveCode")`)
		fits(t, ctx, "move "+lang)
		screenshot(t, ctx, "move-"+lang)
		// Cookies are taken away before the form is sent, as a browser does that keeps none.
		forgetCookies(t, ctx)
		js[bool](t, ctx, fmt.Sprintf(`(() => { const f = document.createElement("form"); f.method = "post"; f.action = "/rooms/hall/join?lang=%s"; document.body.append(f); f.submit(); return true; })()`, lang))
		until(t, ctx, `document.getElementById("code")`)
		fits(t, ctx, "kept "+lang)
		screenshot(t, ctx, "kept-"+lang)
	}
	forgetCookies(t, ctx)
	code := js[string](t, ctx, `document.getElementById("code").textContent`)
	do(t, ctx, chromedp.Click(`form[action="/rooms/hall/move"] button`))
	until(t, ctx, `document.getElementById("code") && document.getElementById("code").textContent === "`+url.PathEscape(code)+`"`)
}

func forgetCookies(t *testing.T, ctx context.Context) {
	t.Helper()
	if _, err := chromedp.Call(ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
}

func fits(t *testing.T, ctx context.Context, what string) {
	t.Helper()
	if js[bool](t, ctx, `document.documentElement.scrollWidth > innerWidth`) {
		t.Errorf("%s is wider than the screen", what)
	}
}
