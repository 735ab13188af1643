package queuehttp

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"usher/internal/axetest"
	"usher/internal/pagehttp"
	"usher/queue/customer"
)

// axe looks at the page with everything folded out, in English in both themes: the
// colours of the dark one do not depend on the words, and a look costs a tenth of a second.
func axe(t *testing.T, ctx context.Context, page string) {
	t.Helper()
	js[bool](t, ctx, `(document.querySelectorAll("details").forEach((d) => { d.open = true; }), true)`)
	for _, theme := range []string{"light", "dark"} {
		if theme == "dark" && js[string](t, ctx, `document.documentElement.lang`) != "en" {
			return
		}
		dress(t, ctx, theme, 390, 844, 1)
		axetest.Check(t, ctx, page+" "+theme)
	}
}

func TestAxeFindsNothingInAnyState(t *testing.T) {
	t.Parallel()
	axetest.Source(t)
	base := gallery(t)
	ctx := browser(t)
	for _, lang := range pagehttp.Langs {
		for name, path := range galleryPaths() {
			join := "?"
			if strings.Contains(path, "?") {
				join = "&"
			}
			do(t, ctx, chromedp.Navigate(base+path+join+"lang="+lang.Code))
			if name == "offline" {
				js[bool](t, ctx, `dispatchEvent(new Event("online"))`)
				until(t, ctx, `!document.querySelector('[data-banner="trouble"]').hidden`)
			}
			axe(t, ctx, name+" "+lang.Code)
		}
	}
}

// The pages beside the line itself, as a real edge serves them.
func TestAxeFindsNothingOnTheOtherPages(t *testing.T) {
	t.Parallel()
	axetest.Source(t)
	h := newHouseWith(t, 0, 5, func(o *Options) {
		o.Customers = func(room string) Customers {
			return Customers{Trust: &customer.Trust{Issuer: "x", Keys: customer.Static{}}, Required: room == "club"}
		}
	})
	h.fill(3)
	h.room, h.version = "club", 0
	h.set("open", 0, 5)
	d := gather(t, h.line, "arena")
	scheduled := gather(t, h.line, "stadium")
	d.State = "gathering"
	d.ship(t)
	last := d.crowd(t, 3)
	d.drawn(t)
	ctx := browser(t)
	post := func(path, field, value string) {
		js[bool](t, ctx, fmt.Sprintf(`(() => {
		  const f = document.createElement("form"), i = document.createElement("input");
		  [f.method, f.action, i.name, i.value] = ["post", %q, %q, %q];
		  f.append(i); document.body.append(f); f.submit(); return true; })()`, path, field, value))
	}
	look := func(page string) {
		axe(t, ctx, page)
		larger(t, ctx, page)
	}
	for _, lang := range pagehttp.Langs {
		at := "?lang=" + lang.Code
		open := func(path, ready string) {
			do(t, ctx, chromedp.Navigate(h.base+path+at))
			until(t, ctx, ready)
			look(path + " " + lang.Code)
		}
		open("/rooms/club", visible("known"))
		open("/rooms/"+scheduled.Room+"/draw", `document.querySelector(".proof")`)
		open("/rooms/arena/draw", `document.querySelector("#check:not([hidden])")`)
		js[bool](t, ctx, fmt.Sprintf(`(document.querySelector("#place").value = %q, document.querySelector("#form button").click(), true)`, last.PlaceID))
		until(t, ctx, `document.querySelector("#results li")`)
		look("a rank worked out " + lang.Code)
		open("/rooms/hall/invite", `document.getElementById("invite")`)
		post("/rooms/hall/invite"+at, "invite", "no-such")
		until(t, ctx, `document.querySelector('[role="status"]')`)
		look("a refused invitation " + lang.Code)
		open("/rooms/hall/move", `document.getElementById("moveCode")`)
		post("/rooms/hall/move"+at, "moveCode", "00000-00000")
		until(t, ctx, `document.querySelector('[role="status"]')`)
		look("a refused code " + lang.Code)
		forgetCookies(t, ctx)
		post("/rooms/hall/join"+at, "x", "")
		until(t, ctx, `document.getElementById("code")`)
		look("kept " + lang.Code)
	}
}

// That axe finds what is wrong: a check that is always content would say nothing.
func TestAxeSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	axetest.Source(t)
	base := gallery(t)
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(base+"/rooms/called"))
	until(t, ctx, visible("called"))
	stayOut(t, ctx)
	js[bool](t, ctx, `(document.getElementById("clock").removeAttribute("aria-label"), document.querySelector("#enter button").textContent = "",
	  document.documentElement.lang = "", document.querySelector(".rules, .leave").insertAdjacentHTML("beforebegin", "<p class=pale>pale</p>"),
	  document.querySelector(".pale").style.color = "rgb(230,230,230)", true)`)
	found := strings.Join(axetest.Violations(t, ctx, "spoiled"), "\n")
	for _, want := range []string{"button-name at #enter > .big", "html-has-lang at html", "color-contrast at .pale"} {
		if !strings.Contains(found, want) {
			t.Errorf("axe does not see %q:\n%s", want, found)
		}
	}
}
