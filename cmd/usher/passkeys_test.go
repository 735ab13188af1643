package main

import (
	"strings"
	"testing"
	"time"

	"usher/booking/bookingtest"
	"usher/internal/devstack/devstacktest"
)

// An edge that signs with one key file and a box office that verifies by another: the
// box office says so when it starts and is not ready, before any fan is refused.
func TestKeysThatDoNotMatchAreRefusedLoudly(t *testing.T) {
	t.Parallel()
	redis, postgres, dir := devstacktest.OwnRedis(t).URL, bookingtest.URL(t), t.TempDir()
	secret := strings.Repeat("s", 32)
	for _, name := range []string{"edge", "booking"} {
		mustUsher(t, nil, "keys", "new", "--file="+dir+"/"+name+".json")
	}
	edgeAdmin := devstacktest.FreeAddr(t)
	edge := start(t, []string{
		"USHER_REDIS_URL=" + redis, "USHER_EDGE_ADDR=127.0.0.1:0", "USHER_ADMIN_ADDR=" + edgeAdmin, "USHER_EDGE_PLACE_SECRETS=" + secret,
		"USHER_PASS_KEYS_FILE=" + dir + "/edge.json", "USHER_BOOKING_PUBLIC_URL=http://127.0.0.1:1",
	}, "edge")
	ready := func(admin string) (int, string) {
		r, err := send(t.Context(), "GET", "http://"+admin+"/readyz", "", "")
		if err != nil {
			return 0, err.Error()
		}
		return r.status, r.body
	}
	edge.until(time.Minute, "the edge", func() bool { status, _ := ready(edgeAdmin); return status == 200 })
	for name, want := range map[string]int{"booking": 503, "edge": 200} {
		admin := devstacktest.FreeAddr(t)
		p := start(t, []string{
			"USHER_POSTGRES_URL=" + postgres, "USHER_REDIS_URL=" + redis, "USHER_BOOKING_ADDR=127.0.0.1:0", "USHER_ADMIN_ADDR=" + admin,
			"USHER_BOOKING_SESSION_SECRET=" + secret, "USHER_BOOKING_TICKET_SECRETS=" + secret, "USHER_PASS_KEYS_FILE=" + dir + "/" + name + ".json", "USHER_EDGE_PUBLIC_URL=http://127.0.0.1:1",
			"USHER_PAYMENT_URL=http://127.0.0.1:1", "USHER_PAYMENT_API_KEY=" + secret, "USHER_PAYMENT_SECRETS=" + secret,
		}, "booking")
		p.until(time.Minute, "started", func() bool { return strings.Contains(p.errs.String(), `"msg":"ready"`) })
		status, body := ready(admin)
		if status != want || (want == 503) != strings.Contains(body, "Keys of passes do not match") {
			t.Errorf("the keys of %s: %d %s", name, status, body)
		}
		if told := strings.Contains(p.errs.String(), `"level":"ERROR","msg":"every fan of an edge will be refused`); told != (want == 503) {
			t.Errorf("the keys of %s: an error in the log: %v", name, told)
		}
	}
}
