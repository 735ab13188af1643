package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// An integrator that publishes its key and names its customers.
type integrator struct {
	*httptest.Server
	key ed25519.PrivateKey
}

func newIntegrator(t *testing.T) *integrator {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &integrator{key: private}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k1","alg":"EdDSA","use":"sig","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *integrator) token(t *testing.T, sub string) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": i.URL, "aud": "usher", "sub": sub, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	})
	token.Header["kid"] = "k1"
	text, err := token.SignedString(i.key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// trust tells the running edges by their file, which they read again.
func (c *cluster) trust(t *testing.T, more string) {
	t.Helper()
	data, err := os.ReadFile(c.config)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(data), "edge: {", "edge: {"+more+", ", 1)
	if err := os.WriteFile(c.config, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The box office's limit counts on the customer an integrator names, from whichever
// browser they come and however often.
func TestTheLimitOfAKnownCustomerCountsOverBrowsers(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	demo, err := os.ReadFile("../../booking/catalog/demo/cinema.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := c.config + ".cinema.yaml"
	if err := os.WriteFile(file, []byte(strings.Replace(string(demo), "maxPerHold: 8, maxPerCustomer: none", "maxPerHold: 6, maxPerCustomer: 6", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	mustUsher(t, nil, "event", "apply", "--config="+c.config, "-f", file)
	shop := newIntegrator(t)
	c.trust(t, fmt.Sprintf(`customers: {"*": {issuer: %q, jwksURL: "%s/jwks.json"}}`, shop.URL, shop.URL))
	show := showtime(t, c.bookings[0], "cinema")
	join := func(edge int, sub, browser string) reply {
		t.Helper()
		body := `{"customerToken":"` + shop.token(t, sub) + `"}`
		var r reply
		eventually(t, 30*time.Second, "a place for "+sub, func() bool {
			var err error
			r, err = send(t.Context(), "POST", c.edges[edge]+"/v1/rooms/cinema/places", "", body, "Cookie", "usher_fan="+browser)
			return err == nil && r.status/100 == 2
		})
		return r
	}
	browser := func() string {
		b := make([]byte, 16)
		_, _ = rand.Read(b)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	// enter claims, with the browser's cookies, and opens a session.
	enter := func(edge int, place reply, browser string) (session string, pass reply) {
		t.Helper()
		eventually(t, 30*time.Second, "a pass", func() bool {
			var err error
			pass, err = send(t.Context(), "POST", c.edges[edge]+"/v1/rooms/cinema/pass", "", "", "Cookie", "usher_fan="+browser+"; usher_place_cinema="+place.text("token"))
			return err == nil && pass.status == 201
		})
		r := call(t, 201, "POST", c.bookings[edge]+"/v1/sessions", "", fmt.Sprintf(`{"pass":%q,"binding":%q}`, pass.text("pass"), pass.text("binding")))
		return r.text("sessionToken"), pass
	}
	hold := func(session string, want int, seats string) reply {
		t.Helper()
		return call(t, want, "POST", c.bookings[0]+"/v1/showtimes/"+show+"/holds", session, `{"seats":[`+seats+`]}`)
	}

	phone, laptop := browser(), browser()
	first := join(0, "alice", phone)
	if second := join(1, "alice", laptop); second.text("placeId") != first.text("placeId") {
		t.Fatalf("two places for one customer: %s, %s", first.body, second.body)
	}
	session, pass := enter(0, first, phone)
	// The other device's pass is the same one: the session is taken.
	other := join(1, "alice", laptop)
	late := call(t, 201, "POST", c.edges[1]+"/v1/rooms/cinema/pass", "", "", "Cookie", "usher_fan="+laptop+"; usher_place_cinema="+other.text("token"))
	if late.text("pass") == pass.text("pass") {
		t.Error("one pass, so one binding, for both browsers")
	}
	taken := call(t, 409, "POST", c.bookings[1]+"/v1/sessions", "", fmt.Sprintf(`{"pass":%q,"binding":%q}`, late.text("pass"), late.text("binding")))
	if !strings.Contains(taken.body, "pass-already-used") {
		t.Errorf("%s", taken.body)
	}
	held := hold(session, 201, `"G1","G2","G3","G4"`)
	checkout := call(t, 201, "POST", c.bookings[0]+"/v1/holds/"+held.text("holdId")+"/checkout", session, "", "Idempotency-Key", "k1")
	if r, err := send(t.Context(), "POST", checkout.text("paymentUrl"), "", "outcome=paid", "Content-Type", "application/x-www-form-urlencoded"); err != nil || r.status >= 400 {
		t.Fatalf("pay: %v %d %s", err, r.status, r.body)
	}
	eventually(t, 30*time.Second, "the booking", func() bool {
		return call(t, 200, "GET", c.bookings[0]+"/v1/bookings/"+checkout.text("bookingId"), session, "").text("state") == "CONFIRMED"
	})
	// Another visit, from the other browser: two are left of six.
	var again reply
	eventually(t, 30*time.Second, "the visit is over", func() bool {
		again = join(1, "alice", laptop)
		return again.text("status") != "admitted"
	})
	session, _ = enter(1, again, laptop)
	if r := hold(session, 409, `"H1","H2","H3"`); !strings.Contains(r.body, "ticket-limit") {
		t.Errorf("%s", r.body)
	}
	hold(session, 201, `"H1","H2"`)
	// Somebody else has six of their own.
	bob := browser()
	session, _ = enter(0, join(0, "bob", bob), bob)
	hold(session, 201, `"D1","D2","D3","D4","D5","D6"`)

	// A token that is not good says so, and changes nothing.
	bad := call(t, 401, "POST", c.edges[0]+"/v1/rooms/cinema/places", "", `{"customerToken":"`+newIntegrator(t).token(t, "alice")+`"}`)
	if !strings.Contains(bad.body, "customer-token-invalid") || bad.header.Get("Set-Cookie") != "" {
		t.Errorf("%s", bad.body)
	}
	mustUsher(t, nil, "audit", "--config="+c.config)
}
