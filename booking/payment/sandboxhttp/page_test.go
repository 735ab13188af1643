package sandboxhttp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"usher/booking/payment"
	"usher/booking/payment/sandboxhttp"
)

func TestThePage(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	_, base, _ := provider(t, s, sandboxhttp.Options{Merchant: "Cine"})
	c := create(t, s, "k", time.Minute)
	get := func(address, lang string) (*http.Response, string) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Language", lang)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		return res, string(raw)
	}
	for lang, want := range map[string]string{
		"pt-BR,pt;q=0.9": "BRL\u00a045,00", "es": "BRL\u00a045,00", "en": "BRL\u00a045.00", "xx": "Pay to Cine", "": "What should happen?",
	} {
		res, page := get(c.URL, lang)
		if res.StatusCode != 200 || !strings.Contains(page, want) {
			t.Errorf("%q: %d, without %q", lang, res.StatusCode, want)
		}
		if strings.Contains(page, "<Film>") || strings.Contains(page, "<script") || strings.Contains(page, "style=") {
			t.Errorf("%q: unescaped or inline: %s", lang, page)
		}
		for _, outcome := range []string{"paid", "declined", "paid-twice", "paid-late", "never"} {
			if !strings.Contains(page, `value="`+outcome+`"`) {
				t.Errorf("%q: no choice %s", lang, outcome)
			}
		}
		if csp := res.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.HasSuffix(csp, "form-action 'self' http://shop.test") {
			t.Errorf("policy %q", csp)
		}
	}
	if res, css := get(base+"/static/pay.css", ""); res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/css") || css == "" {
		t.Errorf("css: %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	for _, path := range []string{"/pay/sp_nobody", "/static/nothing.css", "/static/..%2ftemplates%2fpay.html"} {
		if res, _ := get(base+path, ""); res.StatusCode != 404 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	choose(t, c.URL, url.Values{"outcome": {"paid"}})
	if _, page := get(c.URL, "en"); !strings.Contains(page, "It has been paid.") || strings.Contains(page, "<form") {
		t.Error("a closed payment offers choices")
	}
}

func TestBadRequestsChangeNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	_, base, _ := provider(t, s, sandboxhttp.Options{})
	c := create(t, s, "k", time.Minute)
	for _, form := range []url.Values{
		{}, {"outcome": {"free"}}, {"outcome": {"paid-late"}, "delaySeconds": {"-1"}}, {"outcome": {"paid-late"}, "delaySeconds": {"1e9"}},
	} {
		if status, _ := choose(t, c.URL, form); status != 400 {
			t.Errorf("%v: %d", form, status)
		}
	}
	if o := state(t, s, c.ProviderPaymentID); o.Status != payment.StatusOpen {
		t.Errorf("then %s", o.Status)
	}
	good := map[string]any{
		"idempotencyKey": "x", "amount": 1, "currency": "EUR", "reference": "r", "description": "",
		"returnUrl": "http://a.test", "callbackUrl": "http://b.test", "expiresAt": time.Now(),
	}
	for name, d := range map[string]struct {
		key, field string
		value      any
		status     int
	}{
		"as it should be":    {"key", "amount", 1, 201},
		"no key":             {"", "amount", 1, 401},
		"wrong key":          {"kay", "amount", 1, 401},
		"negative":           {"key", "amount", -1, 422},
		"no currency":        {"key", "currency", "euro", 422},
		"script as return":   {"key", "returnUrl", "javascript:alert(1)", 422},
		"file as callback":   {"key", "callbackUrl", "file:///etc/passwd", 422},
		"no idempotency":     {"key", "idempotencyKey", "", 422},
		"an unknown field":   {"key", "extra", 1, 400},
		"the wrong type":     {"key", "amount", "1", 400},
		"user in an address": {"key", "returnUrl", "http://u:p@a.test", 422},
	} {
		body := map[string]any{}
		for k, v := range good {
			body[k] = v
		}
		body[d.field] = d.value
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, base+"/v1/payments", strings.NewReader(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+d.key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != d.status {
			t.Errorf("%s: %d, want %d", name, res.StatusCode, d.status)
		}
	}
}
