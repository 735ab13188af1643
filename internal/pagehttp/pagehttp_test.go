package pagehttp

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gofiber/fiber/v2"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func testFiles() fstest.MapFS {
	return fstest.MapFS{
		"templates/one.html":  file(`{{define "main"}}<p>{{t "hello" "Name" .Data}}</p><p>{{n "seats" 1234}}</p>{{template "bit" .}}{{end}}`),
		"templates/_bit.html": file(`{{define "bit"}}<i>{{num 5}}</i>{{end}}`),
		"static/one.js":       file("console.log('one');" + strings.Repeat("// filler\n", 50)),
		"messages.en.yaml":    file("hello: Hello {{.Name}}\nseats: {one: '{{.Count}} seat', other: '{{.Count}} seats'}\n"),
		"messages.pt-BR.yaml": file("hello: Olá {{.Name}}\nseats: {one: '{{.Count}} lugar', other: '{{.Count}} lugares'}\n"),
		"messages.es.yaml":    file("hello: Hola {{.Name}}\nseats: {one: '{{.Count}} lugar', other: '{{.Count}} lugares'}\n"),
	}
}

func testApp(t *testing.T) (*fiber.App, *Kit) {
	t.Helper()
	kit, err := New(Options{Files: testFiles()})
	if err != nil {
		t.Fatal(err)
	}
	app := fiber.New()
	kit.Register(app)
	app.Get("/one", func(c *fiber.Ctx) error {
		return kit.Render(c, View{Page: "one", Data: "<b>Bo</b>", Policy: Policy{FormTo: []string{"https://book.example:8443/enter?x=1", "javascript:alert(1)"}}})
	})
	app.Post("/form", func(c *fiber.Ctx) error {
		if !SameOrigin(c, "https://edge.example") {
			return c.SendStatus(http.StatusForbidden)
		}
		return c.SendStatus(http.StatusNoContent)
	})
	return app, kit
}

func get(t *testing.T, app *fiber.App, target string, header ...string) (*http.Response, string) {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 1; i < len(header); i += 2 {
		req.Header.Set(header[i-1], header[i])
	}
	resp, err := app.Test(req, 5000)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var body io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(resp.Body); err != nil {
			t.Fatal(err)
		}
	}
	data, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(data)
}

func TestRenderEscapesAndSecures(t *testing.T) {
	t.Parallel()
	app, _ := testApp(t)
	resp, body := get(t, app, "/one", "Accept-Encoding", "gzip")
	for _, want := range []string{"Hello &lt;b&gt;Bo&lt;/b&gt;", "1,234 seats", "<i>5</i>", `lang="en"`} {
		if !strings.Contains(body, want) {
			t.Errorf("page lacks %q:\n%s", want, body)
		}
	}
	const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; " +
		"form-action 'self' https://book.example:8443; base-uri 'none'; frame-ancestors 'none'"
	if got := resp.Header.Get("Content-Security-Policy"); got != csp {
		t.Errorf("policy\n got %s\nwant %s", got, csp)
	}
	if got := resp.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q", got)
	}
}

func TestNegotiate(t *testing.T) {
	t.Parallel()
	app, _ := testApp(t)
	for _, tc := range []struct{ name, target, accept, cookie, want string }{
		{"nothing", "/one", "", "", "en"},
		{"accept", "/one", "pt-BR,pt;q=0.9,en;q=0.5", "", "pt-BR"},
		{"a cousin", "/one", "es-MX", "", "es"},
		{"portugal reads brazil's", "/one", "pt-PT", "", "pt-BR"},
		{"weights", "/one", "de, es;q=0.4, en;q=0.7", "", "en"},
		{"unknown", "/one", "ja", "", "en"},
		{"garbage", "/one", ";;;q=,,", "", "en"},
		{"cookie beats accept", "/one", "pt-BR", "es", "es"},
		{"foreign cookie", "/one", "pt-BR", "xx", "pt-BR"},
		{"query beats cookie", "/one?lang=en", "pt-BR", "es", "en"},
		{"foreign query", "/one?lang=../etc", "", "es", "es"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := []string{"Accept-Language", tc.accept}
			if tc.cookie != "" {
				h = append(h, "Cookie", LangCookie+"="+tc.cookie)
			}
			resp, body := get(t, app, tc.target, h...)
			if !strings.Contains(body, `<html lang="`+tc.want+`">`) || resp.Header.Get("Content-Language") != tc.want {
				t.Errorf("not in %s: %.80s", tc.want, body)
			}
			set := resp.Header.Get("Set-Cookie")
			if chose := strings.Contains(tc.target, "lang=en"); chose != strings.HasPrefix(set, LangCookie+"=en") {
				t.Errorf("Set-Cookie %q", set)
			}
		})
	}
}

func TestLanguageSwitchKeepsTheQuery(t *testing.T) {
	t.Parallel()
	app, _ := testApp(t)
	_, body := get(t, app, "/one?left=1&lang=es")
	if want := `href="/one?lang=pt-BR&amp;left=1"`; !strings.Contains(body, want) {
		t.Errorf("no %s in\n%s", want, body)
	}
}

func TestAssets(t *testing.T) {
	t.Parallel()
	app, kit := testApp(t)
	url, err := kit.Assets.URL("one.js")
	if err != nil {
		t.Fatal(err)
	}
	resp, body := get(t, app, url, "Accept-Encoding", "br, gzip")
	if resp.StatusCode != 200 || !strings.Contains(resp.Header.Get("Cache-Control"), "immutable") || resp.Header.Get("Content-Encoding") != "gzip" || !strings.HasPrefix(body, "console.log") {
		t.Errorf("%d %v %.40s", resp.StatusCode, resp.Header, body)
	}
	resp, _ = get(t, app, url, "Accept-Encoding", "gzip;q=0")
	if resp.Header.Get("Content-Encoding") != "" {
		t.Error("compressed for a client that refuses it")
	}
	resp, body = get(t, app, "/assets/one.0123456789.js")
	if resp.StatusCode != 200 || resp.Header.Get("Cache-Control") != "no-store" || body == "" {
		t.Errorf("an address of another release: %d %v", resp.StatusCode, resp.Header)
	}
	for _, bad := range []string{"/assets/", "/assets/two.0123456789.js", "/assets/..%2fkit.go", "/assets/one.js/x"} {
		if resp, _ := get(t, app, bad); resp.StatusCode != 404 {
			t.Errorf("%s: %d", bad, resp.StatusCode)
		}
	}
}

func TestSameOrigin(t *testing.T) {
	t.Parallel()
	app, _ := testApp(t)
	for _, tc := range []struct {
		name   string
		header []string
		want   int
	}{
		{"own page", []string{"Origin", "http://example.com", "Sec-Fetch-Site", "same-origin"}, 204},
		{"allowed", []string{"Origin", "https://edge.example", "Sec-Fetch-Site", "cross-site"}, 204},
		{"stranger", []string{"Origin", "https://evil.example"}, 403},
		{"another port is another origin", []string{"Origin", "http://example.com:8081", "Sec-Fetch-Site", "same-site"}, 403},
		{"null", []string{"Origin", "null"}, 403},
		{"cross-site without origin", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"no browser", nil, 204},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			req := httptest.NewRequest(http.MethodPost, "/form", nil)
			for i := 0; i < len(tc.header); i += 2 {
				req.Header.Set(tc.header[i], tc.header[i+1])
			}
			resp, err := app.Test(req, 5000)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != tc.want {
				t.Errorf("got %d, want %d", resp.StatusCode, tc.want)
			}
		})
	}
}

func TestNewNamesEveryHole(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(fstest.MapFS)
		want string
	}{
		"missing translation": {func(f fstest.MapFS) { f["messages.es.yaml"] = file("hello: Hola\n") }, `"seats" is missing in es`},
		"missing plural":      {func(f fstest.MapFS) { f["messages.es.yaml"] = file("hello: Hola\nseats: lugares\n") }, `"seats" counts in en and does not in es`},
		"no such file":        {func(f fstest.MapFS) { delete(f, "messages.pt-BR.yaml") }, "messages.pt-BR.yaml"},
		"broken template":     {func(f fstest.MapFS) { f["templates/two.html"] = file(`{{define "main"}}{{nope}}{{end}}`) }, "two"},
		"one name twice":      {func(f fstest.MapFS) { f["static/usher.css"] = file("a{}") }, "usher.css is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := testFiles()
			tc.edit(files)
			if _, err := New(Options{Files: files}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	kit, err := New(Options{Files: testFiles()})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 12, 5, 20, 30, 0, 0, time.UTC)
	type row struct{ number, thousand, brl, eur, jpy, odd, date, clock, million string }
	want := map[string]row{
		"en":    {"1,234,567", "1,234", "R$1,050.05", "-€3.00", "JPY\u00a0500", "XQZ\u00a01.00", "Saturday, December 5", "8:30\u00a0PM", "1,000,000 seats"},
		"pt-BR": {"1.234.567", "1.234", "R$\u00a01.050,05", "-€\u00a03,00", "JPY\u00a0500", "XQZ\u00a01,00", "sábado, 5 de dezembro", "20:30", "1.000.000 lugares"},
		"es":    {"1.234.567", "1234", "1050,05\u00a0R$", "-3,00\u00a0€", "500\u00a0JPY", "1,00\u00a0XQZ", "sábado, 5 de diciembre", "20:30", "1.000.000 lugares"},
	}
	for _, l := range Langs {
		text := kit.Catalog.Text(l)
		million, err := text.N("seats", 1_000_000)
		if err != nil {
			t.Errorf("%s: %v", l.Code, err)
		}
		got := row{text.Number(1234567), text.Number(1234), text.Money(105005, "BRL"), text.Money(-300, "EUR"), text.Money(500, "JPY"),
			text.Money(100, "XQZ"), text.Date(at), text.Clock(at), million}
		if got != want[l.Code] {
			t.Errorf("%s:\n got %q\nwant %q", l.Code, got, want[l.Code])
		}
	}
}
