package sandboxhttp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"usher/booking/payment"
	"usher/booking/payment/sandbox"
	"usher/booking/payment/sandboxhttp"
	"usher/internal/basehttp"
)

const secret = "0123456789abcdef0123456789abcdef"

type shop struct {
	*httptest.Server
	mu     sync.Mutex
	refuse int
	got    []payment.Event
	client *sandbox.Client
}

func (s *shop) events() []payment.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]payment.Event(nil), s.got...)
}

func newShop(t *testing.T) *shop {
	s := &shop{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.refuse > 0 {
			s.refuse--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		e, err := s.client.ParseCallback(r.Header.Get, raw, time.Now())
		if err != nil {
			t.Errorf("callback: %v", err)
		}
		s.got = append(s.got, e)
	}))
	t.Cleanup(s.Close)
	return s
}

func provider(t *testing.T, s *shop, o sandboxhttp.Options) (srv *sandboxhttp.Server, base string, stop func()) {
	t.Helper()
	o.Log, o.APIKey, o.Secret, o.DeliverPause = slog.New(slog.DiscardHandler), "key", []byte(secret), time.Millisecond
	srv, err := sandboxhttp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	web := basehttp.NewServer(basehttp.Options{Name: "sandbox", Log: o.Log})
	srv.Register(web.App)
	addr, err := web.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base = "http://" + addr.String()
	client, err := sandbox.New(sandbox.Options{BaseURL: base, APIKey: "key", Secrets: [][]byte{[]byte(secret)}, CallbackURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock() // a restarted provider delivers as soon as it runs
	s.client = client
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := web.Serve(); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() {
		if err := srv.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		_ = web.Shutdown(context.Background())
		cancel()
		wg.Wait()
	})
	t.Cleanup(stop)
	return srv, base, stop
}

func create(t *testing.T, s *shop, key string, life time.Duration) payment.Created {
	t.Helper()
	c, err := s.client.Create(context.Background(), payment.CreateRequest{
		Key: key, Reference: "ref-" + key, Amount: 4500, Currency: "BRL", Description: "<Film> & Popcorn",
		ReturnURL: "http://shop.test/back", ExpiresAt: time.Now().Add(life),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func choose(t *testing.T, page string, form url.Values) (int, string) {
	t.Helper()
	web := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := web.PostForm(page, form)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode, res.Header.Get("Location")
}

func state(t *testing.T, s *shop, id string) payment.Outcome {
	t.Helper()
	o, err := s.client.Fetch(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestTheFiveOutcomes(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[string]struct {
		status payment.Status
		events int
	}{
		"paid": {payment.StatusPaid, 1}, "declined": {payment.StatusDeclined, 1}, "paid-twice": {payment.StatusPaid, 2},
		"paid-late": {payment.StatusPaid, 1}, "never": {payment.StatusPaid, 0},
	} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			srv, _, _ := provider(t, s, sandboxhttp.Options{LateAfter: 100 * time.Millisecond})
			c := create(t, s, "k", time.Minute)
			if status, to := choose(t, c.URL, url.Values{"outcome": {outcome}, "returnUrl": {"http://evil.test"}}); status != 303 || to != "http://shop.test/back" {
				t.Errorf("status %d to %q", status, to)
			}
			if outcome == "paid-late" {
				if o := state(t, s, c.ProviderPaymentID); o.Status != payment.StatusProcessing {
					t.Errorf("at once it is %s", o.Status)
				}
				if o, err := s.client.Expire(context.Background(), c.ProviderPaymentID); err != nil || o.Status != payment.StatusProcessing {
					t.Errorf("expired on its way: %s, %v", o.Status, err)
				}
			}
			eventually(t, "its state", func() bool { return state(t, s, c.ProviderPaymentID).Status == want.status })
			eventually(t, "its callbacks", func() bool { return len(s.events()) == want.events })
			for _, e := range s.events() {
				if e.Status != want.status || e.Reference != "ref-k" || e.ID != s.events()[0].ID {
					t.Errorf("event %+v", e)
				}
			}
			taken := int64(4500)
			if outcome == "declined" {
				taken = 0
			}
			if got := srv.Totals()["BRL"]; got.Captured != taken {
				t.Errorf("taken %d", got.Captured)
			}
			// A second choice changes nothing.
			choose(t, c.URL, url.Values{"outcome": {"declined"}})
			if o := state(t, s, c.ProviderPaymentID); o.Status != want.status {
				t.Errorf("then %s", o.Status)
			}
		})
	}
}

func TestDeliveriesAreRepeatedUntilTaken(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.refuse = 3
	provider(t, s, sandboxhttp.Options{})
	c := create(t, s, "k", time.Minute)
	choose(t, c.URL, url.Values{"outcome": {"paid"}})
	eventually(t, "delivered", func() bool { return len(s.events()) == 1 })
}

func TestAPageThatIsOverCannotBePaidOn(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	provider(t, s, sandboxhttp.Options{})
	c := create(t, s, "k", -time.Second)
	choose(t, c.URL, url.Values{"outcome": {"paid"}})
	if o := state(t, s, c.ProviderPaymentID); o.Status != payment.StatusExpired || o.Amount != 0 {
		t.Errorf("%+v", o)
	}
}

func TestOneKeyIsOnePaymentAndOneRefund(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	srv, _, _ := provider(t, s, sandboxhttp.Options{})
	ctx := context.Background()
	a, b := create(t, s, "k", time.Minute), create(t, s, "k", time.Minute)
	if a != b {
		t.Errorf("%+v and %+v", a, b)
	}
	if _, err := s.client.Create(ctx, payment.CreateRequest{Key: "k", Reference: "ref-k", Amount: 1, Currency: "BRL", ReturnURL: "http://x.test", ExpiresAt: time.Now()}); !errors.Is(err, payment.ErrRefused) {
		t.Errorf("another amount: %v", err)
	}
	refund := func(key string, amount int64) (string, error) {
		return s.client.Refund(ctx, payment.RefundRequest{Key: key, ProviderPaymentID: a.ProviderPaymentID, Amount: amount})
	}
	if _, err := refund("r", 1); !errors.Is(err, payment.ErrRefused) {
		t.Errorf("nothing taken: %v", err)
	}
	choose(t, a.URL, url.Values{"outcome": {"never"}})
	first, err := refund("r1", 3000)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := refund("r1", 3000); err != nil || again != first {
		t.Errorf("again %q after %q, %v", again, first, err)
	}
	for name, err := range map[string]error{"over": second(refund("r2", 1501)), "other amount": second(refund("r1", 1))} {
		if !errors.Is(err, payment.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := srv.Totals()["BRL"]; got.Refunded != 3000 {
		t.Errorf("%d given back", got.Refunded)
	}
	if _, err := s.client.Fetch(ctx, "sp_nobody"); !errors.Is(err, payment.ErrNotKnown) {
		t.Errorf("unknown: %v", err)
	}
}

func second(_ string, err error) error { return err }

func TestTheFileKeepsTheStateOverARestart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sandbox.jsonl")
	s := newShop(t)
	s.refuse = 1 << 20 // nothing is taken before the restart
	_, _, stop := provider(t, s, sandboxhttp.Options{File: file, LateAfter: 50 * time.Millisecond})
	paid, late := create(t, s, "paid", time.Minute), create(t, s, "late", time.Minute)
	choose(t, paid.URL, url.Values{"outcome": {"paid"}})
	choose(t, late.URL, url.Values{"outcome": {"paid-late"}})
	stop()
	s.mu.Lock()
	s.refuse = 0
	s.mu.Unlock()
	provider(t, s, sandboxhttp.Options{File: file})
	eventually(t, "both delivered", func() bool { return len(s.events()) >= 2 })
	for _, id := range []string{paid.ProviderPaymentID, late.ProviderPaymentID} {
		if o := state(t, s, id); o.Status != payment.StatusPaid {
			t.Errorf("%s", o.Status)
		}
	}
}
