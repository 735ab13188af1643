package payment_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"usher/booking/bookingtest"
	"usher/booking/payment"
)

// A stop in the middle of a slow refund ends in seconds, and the next process
// pays it out: the refund's key makes the repetition harmless.
func TestRunStopsWithARefundUnderWayAndTheNextOneFinishesIt(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{}, 1)
	slow := &counting{}
	s := newShop(t, func(o *setup) {
		o.provider = func(p payment.Provider) payment.Provider { slow.Provider = p; return slow }
	})
	b := s.sold("ana", "A1")
	slow.slowRefund = func(ctx context.Context) error {
		reached <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	_, err := s.desk.Refund(context.Background(), "boss", b.ID, payment.RefundOrder{})
	must(t, err)
	<-reached
	start := time.Now()
	s.stopDesk()
	if took := time.Since(start); took > 12*time.Second {
		t.Errorf("stopped after %s", took)
	}
	if n := s.number(`SELECT count(*) FROM refund WHERE state = 'DUE'`); n != 1 {
		t.Fatalf("%d refunds due", n)
	}
	next, err := payment.New(s.pool, payment.Options{Provider: s.client, ReturnURL: func(string) string { return "" }, ReconcileEvery: -1})
	must(t, err)
	run(t, next.Run)
	s.awaitRefunds()
	s.balance()
}

func TestRunStopsCleanlyAgainAndAgain(t *testing.T) {
	t.Parallel()
	pool := bookingtest.Pool(t)
	for range 3 {
		d, err := payment.New(pool, payment.Options{Provider: silent{}, ReturnURL: func(string) string { return "" }, ReconcileEvery: time.Millisecond})
		must(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		time.Sleep(5 * time.Millisecond) // anywhere in its start
		cancel()
		select {
		case err := <-done:
			must(t, err)
		case <-time.After(8 * time.Second):
			t.Fatal("Run does not stop")
		}
	}
	eventually(t, "no connection is kept", func() bool { return pool.Stat().AcquiredConns() == 0 })
}

func TestOptionsSayEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := payment.New(bookingtest.Pool(t), payment.Options{PaymentLife: time.Hour, ProviderTimeout: -1})
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{"provider", "return address", "outlive", "positive"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing about %q in: %v", want, err)
		}
	}
}

func TestMetricsRegisterOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, func(o *setup) { o.desk.Registerer = prometheus.NewRegistry() })
	reg := prometheus.NewRegistry()
	_, err := payment.New(s.pool, payment.Options{Provider: s.client, ReturnURL: func(string) string { return "" }, Registerer: reg})
	must(t, err)
	if _, err := payment.New(s.pool, payment.Options{Provider: s.client, ReturnURL: func(string) string { return "" }, Registerer: reg}); err == nil {
		t.Error("registered twice")
	}
}
