package queuehttp

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// browser starts a Chromium of this test's own. A machine without one fails the
// test: the page is for browsers, and a skipped test would say nothing.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if path, err = exec.LookPath("google-chrome"); err != nil {
			t.Fatal("no chromium on PATH: install it (`make deps` does) to test the pages")
		}
	}
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.NoFirstRun,
		chromedp.UserDataDir(t.TempDir()),
	}
	for _, flag := range []string{"disable-gpu", "disable-quic", "disable-background-networking", "disable-component-update",
		"disable-sync", "disable-dev-shm-usage", "hide-scrollbars"} {
		opts = append(opts, chromedp.Flag(flag, true))
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc, chromedp.WithLogf(t.Logf))
	ctx, timeout := context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(func() { timeout(); cancel(); stop() })
	do(t, ctx, chromedp.Navigate("about:blank"))
	return ctx
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// js evaluates an expression in the page.
func js[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression to become true, across loads of the page.
func until(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		// An error is a page on its way out.
		if ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")")); err == nil && ok {
			return
		}
		if time.Now().After(deadline) {
			body, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.title + "\n" + document.body.innerText`))
			t.Fatalf("never true: %s\n%s", expression, body)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// complaints collects what the browser's console says against the page: errors
// of the script and breaches of the security policy.
func complaints(t *testing.T, ctx context.Context) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	messages := chromedp.Console(ctx)
	done := make(chan struct{})
	var heard []string
	go func() {
		defer close(done)
		for m, err := range messages {
			if err != nil {
				return
			}
			// The log of failed requests is not one: 401, 409 and 503 are answers.
			if m.IsException() || m.Source == "security" || m.Type == chromedp.ConsoleError && m.Source != "network" {
				heard = append(heard, m.String())
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		for _, m := range heard {
			t.Errorf("the browser complains: %s", m)
		}
	})
}

// dress sets theme and viewport.
func dress(t *testing.T, ctx context.Context, theme string, width, height int64, scale float64) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	do(t, ctx, chromedp.EmulateViewport(width, height, chromedp.EmulateScale(scale)))
}

// screenshot writes the whole page to the folder $USHER_SCREENS, if that is set.
func screenshot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	dir := os.Getenv("USHER_SCREENS")
	if dir == "" {
		return
	}
	data, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}
