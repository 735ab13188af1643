// Package axetest lets tests look at a page with axe-core, by WCAG 2.2 AA.
package axetest

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// folder is where `make deps-test` puts axe-core, seen from the module's root.
const folder = "queue/queuehttp/testdata/axe"

// Source is axe-core itself. Where it is not installed the test is skipped and says so.
func Source(t *testing.T) string {
	t.Helper()
	script, err := source()
	if err != nil {
		t.Skip("axe-core is missing; make deps-test installs it, or: npm ci --prefix " + folder)
	}
	return script
}

// Installed is for tests that look at much else too, and leave only axe's look out.
func Installed() bool {
	_, err := source()
	return err == nil
}

var source = sync.OnceValues(func() (string, error) {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return "", os.ErrNotExist
	}
	b, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../..", folder, "node_modules/axe-core/axe.min.js"))
	return string(b), err
})

// look runs the rules and tells a line for each element that breaks one. What axe can
// not decide is no violation: contrast over a gradient is the tests' own to measure.
const look = `axe.run(document, {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"],
}).then((r) => {
  if (r.passes.length < 5) throw new Error("axe looked at next to nothing: " + r.passes.length + " rules");
  return r.violations.flatMap((v) => v.nodes.map((n) => v.id + " at " + n.target.join(" ") + ": " + n.any.concat(n.all, n.none).map((c) => c.message).join(" ")));
})`

// Check fails the test with rule, element and page for every violation on the page that
// the browser shows.
func Check(t *testing.T, ctx context.Context, page string) {
	t.Helper()
	if found := Violations(t, ctx, page); len(found) > 0 {
		t.Errorf("%s: axe:\n\t%s", page, strings.Join(found, "\n\t"))
	}
}

// Violations are a line each: rule, element, what is wrong with it. The debugger's
// evaluation is not bound by the page's policy, which forbids foreign scripts; axe stays
// until the page is left.
func Violations(t *testing.T, ctx context.Context, page string) []string {
	t.Helper()
	script := Source(t)
	if has, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!window.axe")); err != nil {
		t.Fatal(err)
	} else if !has {
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script+"\n;!!window.axe")); err != nil {
			t.Fatal(err)
		}
	}
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](look, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: axe: %v", page, err)
	}
	return found
}
