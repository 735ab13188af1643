package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"usher/internal/devstack/devstacktest"
)

// The whole way on one command, as an integrator's program walks it, then the
// end: nothing is left running, nothing is left on the disk.
func TestDevWalk(t *testing.T) {
	t.Parallel()
	tmp := openTemp(t)
	dev, at := startDev(t, []string{"TMPDIR=" + tmp})
	kids := children(t, dev.cmd.Process.Pid)
	if len(kids) != 2 {
		t.Errorf("want a Postgres and a Redis, got %v", kids)
	}
	for _, want := range []string{at.Edge + "/rooms/cinema", at.Edge + "/rooms/stadium", at.Edge + "/rooms/last-seats", at.Booking, at.Sandbox, at.Admin, at.OperatorToken} {
		if !strings.Contains(dev.out.String(), want) {
			t.Errorf("the banner lacks %s", want)
		}
	}
	call(t, 200, "GET", at.Admin+"/readyz", "", "")

	f := admit(t, at.Edge, at.Booking, "cinema", "walk")
	show := showtime(t, at.Booking, "cinema")
	hold := call(t, 201, "POST", at.Booking+"/v1/showtimes/"+show+"/holds", f.session, `{"seats":["F5","F6"]}`)
	call(t, 200, "POST", at.Booking+"/v1/showtimes/"+show+"/holds", f.session, `{"seats":["F5","F6"]}`)
	checkout := call(t, 201, "POST", at.Booking+"/v1/holds/"+hold.text("holdId")+"/checkout", f.session, "", "Idempotency-Key", "k1")
	r, err := send(t.Context(), "POST", checkout.text("paymentUrl"), "", "outcome=paid", "Content-Type", "application/x-www-form-urlencoded")
	if err != nil || r.status >= 400 {
		t.Fatalf("pay: %v %d %s", err, r.status, r.body)
	}
	booking := at.Booking + "/v1/bookings/" + checkout.text("bookingId")
	eventually(t, 20*time.Second, "the booking to be confirmed", func() bool {
		r := call(t, 200, "GET", booking, f.session, "")
		tickets, _ := r.doc["tickets"].([]any)
		return len(tickets) == 2 && strings.EqualFold(r.text("state")+r.text("status"), "CONFIRMED")
	})
	if out := mustUsher(t, nil, "audit", "--postgres-url", at.PostgresURL); !strings.Contains(out, "holds") {
		t.Errorf("audit: %s", out)
	}
	eventually(t, 10*time.Second, "the booking's event in the file", func() bool {
		files, _ := filepath.Glob(tmp + "/*/booking-events.jsonl")
		if len(files) != 1 {
			return false
		}
		text, _ := os.ReadFile(files[0])
		return strings.Contains(string(text), `"BookingConfirmed"`) && strings.Contains(string(text), checkout.text("bookingId"))
	})
	metrics := call(t, 200, "GET", at.Admin+"/metrics", "", "").body
	for _, want := range []string{
		`usher_http_requests_total{listener="booking",method="POST",route="/v1/sessions",status="2xx"} 1`,
		"go_goroutines", "process_open_fds", "usher_bridge_shipments_total",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}

	begin := time.Now()
	dev.signal(os.Interrupt)
	if code := dev.exits(20 * time.Second); code != 0 {
		t.Errorf("exit %d", code)
	}
	t.Logf("stopped in %s", time.Since(begin))
	for _, pid := range kids {
		if alive(pid) {
			t.Errorf("process %d is left running", pid)
		}
	}
	if left, _ := filepath.Glob(tmp + "/*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// openTemp is a temporary folder that an unprivileged server may enter; the
// sockets' path stays short.
func openTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "u")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDevOperator(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	env := []string{"XDG_CACHE_HOME=" + cache}
	dev := start(t, env, append([]string{"dev", "--ready-file=" + cache + "/ready"}, anyPorts...)...)
	dev.until(time.Minute, "the banner", func() bool { return strings.Contains(dev.out.String(), "Ctrl-C") })
	files, _ := filepath.Glob(cache + "/usher/admin-*.token")
	if len(files) != 1 {
		t.Fatalf("the token's file: %v", files)
	}
	if st, err := os.Stat(files[0]); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v %v", st.Mode(), err)
	}
	var port int
	if _, err := fmt.Sscanf(filepath.Base(files[0]), "admin-%d.token", &port); err != nil {
		t.Fatal(err)
	}
	admin := fmt.Sprintf("http://127.0.0.1:%d", port)
	env = append(env, "USHER_ADMIN_URL="+admin)

	for _, step := range []struct{ args, want string }{
		{"status", "last-seats"},
		{"pause cinema", "paused"},
		{"resume cinema", "open"},
		{"close cinema", "closed"},
		{"open cinema", "open"},
		{"rate 77 cinema", "77 a minute"},
		{"cap cinema 11", "at most 11"},
		{"status cinema", "77 a minute, at most 11"},
		{"status cinema", "valve: fixed, now 77 of 77 a minute, 11 of 11 inside (fixed)"},
		{"valve cinema adaptive", "77 a minute"},
		{"status cinema", "valve: adaptive, now"},
	} {
		if out := mustUsher(t, env, append([]string{"room"}, strings.Fields(step.args)...)...); !strings.Contains(out, step.want) {
			t.Errorf("room %s: %s", step.args, out)
		}
	}
	for _, step := range []struct{ args, want string }{
		{"pause nowhere", "no such room"},
		{"resume cinema --token=x", "token"},
		{"cap -5 cinema", ""},
		{"rate many cinema", "number"},
		{"valve cinema sometimes", "fixed"},
	} {
		if out, code := usher(t, env, append([]string{"room"}, strings.Fields(step.args)...)...); code == 0 || !strings.Contains(out, step.want) {
			t.Errorf("room %s: exit %d, %s", step.args, code, out)
		}
	}
	dev.signal(syscall.SIGTERM)
	dev.exits(20 * time.Second)
	if _, err := os.Stat(files[0]); err == nil {
		t.Error("the token's file is left behind")
	}
}

// A pause counts at once where Redis hears of it; where it does not, the operator
// is told that fans are still let in.
func TestAPauseThatRedisDoesNotHear(t *testing.T) {
	t.Parallel()
	_, at := startDev(t, nil, "--redis-url=redis://"+devstacktest.FreeAddr(t))
	r := call(t, 200, "POST", at.Admin+"/v1/admin/rooms/cinema/pause", at.OperatorToken, "")
	if r.doc["pushed"] != false || r.text("state") != "paused" {
		t.Errorf("got %s", r.body)
	}
	out := mustUsher(t, nil, "room", "resume", "cinema", "--admin="+at.Admin, "--token="+at.OperatorToken)
	if !strings.Contains(out, "open") || !strings.Contains(out, "bridge's next turn") {
		t.Errorf("got %s", out)
	}
	_, at = startDev(t, nil)
	if r := call(t, 200, "POST", at.Admin+"/v1/admin/rooms/cinema/pause", at.OperatorToken, ""); r.doc["pushed"] != true {
		t.Errorf("with Redis: %s", r.body)
	}
	if out := mustUsher(t, nil, "room", "resume", "cinema", "--admin="+at.Admin, "--token="+at.OperatorToken); strings.Contains(out, "bridge") {
		t.Errorf("with Redis: %s", out)
	}
}

// The token that usher dev left is for this machine: it is found by the port
// alone, and any machine may have that port.
func TestTheRememberedTokenStaysHere(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	cache := t.TempDir()
	if err := os.MkdirAll(cache+"/usher", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cache+"/usher/admin-"+port+".token", []byte("the-dev-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"192.0.2.1", "127.0.0.1.example.invalid", "[2001:db8::1]"} {
		begin := time.Now()
		out, code := usher(t, []string{"XDG_CACHE_HOME=" + cache}, "room", "status", "--admin=http://"+host+":"+port)
		if code != 1 || !strings.Contains(out, "this machine only") || time.Since(begin) > 8*time.Second {
			t.Errorf("%s: exit %d: %s", host, code, out)
		}
	}
	_ = ln.Close()
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]"} { // they get past it, to a port where nobody listens
		if out, code := usher(t, []string{"XDG_CACHE_HOME=" + cache}, "room", "status", "--admin=http://"+host+":"+port); code != 1 || !strings.Contains(out, "nobody answers") {
			t.Errorf("%s: exit %d: %s", host, code, out)
		}
	}
}

func TestDevPortTaken(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	begin := time.Now()
	out, code := usher(t, []string{"XDG_CACHE_HOME=" + t.TempDir(), "USHER_BOOKING_ADDR=" + ln.Addr().String()},
		"dev", "--edge-addr=127.0.0.1:0", "--sandbox-addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0")
	if code != 1 || !strings.Contains(out, "booking: "+ln.Addr().String()+" is taken by another program; set another address with USHER_BOOKING_ADDR") {
		t.Errorf("exit %d: %s", code, out)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %s to say so", took)
	}
}

func TestDevKeepsData(t *testing.T) {
	t.Parallel()
	data := openTemp(t) + "/kept"
	dev, at := startDev(t, nil, "--data="+data)
	call(t, 200, "PATCH", at.Admin+"/v1/admin/rooms/cinema", at.OperatorToken, `{"cap":7}`)
	place := call(t, 201, "POST", at.Edge+"/v1/rooms/last-seats/places", "", "", "Idempotency-Key", "kept").text("token")
	call(t, 200, "POST", at.Admin+"/v1/admin/rooms/stadium/pause", at.OperatorToken, "")

	// A second one on the same folder is refused, and leaves the first alone.
	out, code := usher(t, []string{"XDG_CACHE_HOME=" + t.TempDir()}, append([]string{"dev", "--data=" + data}, anyPorts...)...)
	if code != 1 || !strings.Contains(out, "another usher dev works in "+data) {
		t.Errorf("exit %d: %s", code, out)
	}
	call(t, 200, "GET", at.Admin+"/readyz", "", "")

	dev.signal(syscall.SIGTERM)
	if code := dev.exits(20 * time.Second); code != 0 {
		t.Errorf("exit %d", code)
	}
	if out := mustUsher(t, nil, "audit", "--data="+data); !strings.Contains(out, "holds") {
		t.Errorf("audit: %s", out)
	}

	_, again := startDev(t, nil, "--data="+data)
	if again.OperatorToken != at.OperatorToken {
		t.Error("the operator's token changed")
	}
	r := call(t, 200, "GET", again.Admin+"/v1/admin/rooms/stadium", at.OperatorToken, "")
	if r.text("state") != "paused" {
		t.Errorf("the pause is forgotten: %s", r.body)
	}
	// The place of before still counts: same keys, same line.
	eventually(t, 10*time.Second, "the place of before", func() bool {
		r, err := send(t.Context(), "GET", again.Edge+"/v1/rooms/last-seats/place", place, "")
		return err == nil && r.status == 200 && r.text("status") != "expired"
	})
}

// Killed like a crash: the stores go too.
func TestDevKilled(t *testing.T) {
	t.Parallel()
	dev, _ := startDev(t, nil)
	kids := children(t, dev.cmd.Process.Pid)
	if len(kids) != 2 {
		t.Fatalf("children: %v", kids)
	}
	dev.signal(syscall.SIGKILL)
	dev.exits(10 * time.Second)
	eventually(t, 20*time.Second, "the stores to end", func() bool { return !alive(kids[0]) && !alive(kids[1]) })
}
