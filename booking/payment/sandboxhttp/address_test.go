package sandboxhttp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"usher/booking/payment"
	"usher/booking/payment/sandboxhttp"
)

// ask calls base+path and returns the answer with its body read.
func ask(t *testing.T, method, address string, body io.Reader, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	web := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	return res, string(raw)
}

func TestThePageIsFoundByTheMerchantsReference(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	file := filepath.Join(t.TempDir(), "state")
	_, base, stop := provider(t, s, sandboxhttp.Options{File: file})
	open := func(ref string) payment.Created {
		c, err := s.client.Create(context.Background(), payment.CreateRequest{
			Key: "key-" + ref, Reference: ref, Amount: 100, Currency: "EUR", ReturnURL: "http://shop.test/back", ExpiresAt: time.Now().Add(time.Minute),
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ref := uuid.Must(uuid.NewV7()).String()
	c := open(ref)
	open("order-17") // anybody guesses that
	open("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
	for path, want := range map[string]int{
		"/pay/" + ref: 200, "/pay/order-17": 404, "/pay/6ba7b810-9dad-11d1-80b4-00c04fd430c8": 404, "/pay/key-" + ref: 404,
		"/pay/" + strings.ToUpper(ref): 404,
	} {
		if res, _ := ask(t, "GET", base+path, http.NoBody); res.StatusCode != want {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	stop() // and found again after a restart
	_, base, _ = provider(t, s, sandboxhttp.Options{File: file})
	if status, to := choose(t, base+"/pay/"+ref, url.Values{"outcome": {"declined"}}); status != 303 || to != "http://shop.test/back" {
		t.Errorf("%d to %q", status, to)
	}
	if o := state(t, s, c.ProviderPaymentID); o.Status != payment.StatusDeclined {
		t.Errorf("then %s", o.Status)
	}
	// The API knows payments by their own id only.
	if _, err := s.client.Fetch(context.Background(), ref); err == nil {
		t.Error("fetched by reference")
	}
}

func TestTheFormIsTakenFromItsBodyAlone(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	_, _, _ = provider(t, s, sandboxhttp.Options{})
	c := create(t, s, "k", time.Minute)
	const form = "application/x-www-form-urlencoded"
	var packed, parts bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("outcome=paid"))
	_ = z.Close()
	m := multipart.NewWriter(&parts)
	_ = m.WriteField("outcome", "paid")
	_ = m.Close()
	for name, d := range map[string]struct {
		query, body string
		headers     []string
		status      int
	}{
		"query":     {"?outcome=paid", "", []string{"Content-Type", form}, 400},
		"multipart": {"", parts.String(), []string{"Content-Type", m.FormDataContentType()}, 415},
		"packed":    {"", packed.String(), []string{"Content-Type", form, "Content-Encoding", "gzip"}, 415},
		"no type":   {"", "outcome=paid", nil, 415},
	} {
		if res, body := ask(t, "POST", c.URL+d.query, strings.NewReader(d.body), d.headers...); res.StatusCode != d.status {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
	if o := state(t, s, c.ProviderPaymentID); o.Status != payment.StatusOpen {
		t.Errorf("then %s", o.Status)
	}
}

func TestAnUnknownAddressInABrowserIsAPage(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	_, base, _ := provider(t, s, sandboxhttp.Options{Merchant: "Cine"})
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, method := range []string{"GET", "POST"} {
		res, page := ask(t, method, base+"/pay/sp_nobody", strings.NewReader("outcome=paid"),
			"Accept", browser, "Accept-Language", "pt-BR", "Content-Type", "application/x-www-form-urlencoded")
		if res.StatusCode != 404 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") ||
			!strings.Contains(page, "Este pagamento não existe") || !strings.Contains(page, "Cine") || strings.Contains(page, "<form") {
			t.Errorf("%s: %d %s", method, res.StatusCode, page)
		}
	}
	if res, _ := ask(t, "GET", base+"/pay/sp_nobody", http.NoBody); res.StatusCode != 404 || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("a program: %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
}
