package main

import (
	"crypto/ed25519"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"
)

// From the purchase to the door: M12 with the real program, and a scanner without a
// network that has only what is published.
func TestM12_FromThePurchaseToTheDoor(t *testing.T) {
	t.Parallel()
	_, at := startDev(t, nil)
	f := admit(t, at.Edge, at.Booking, "cinema", "door")
	show := showtime(t, at.Booking, "cinema")
	hold := call(t, 201, "POST", at.Booking+"/v1/showtimes/"+show+"/holds", f.session, `{"seats":["F5","F6"]}`)
	checkout := call(t, 201, "POST", at.Booking+"/v1/holds/"+hold.text("holdId")+"/checkout", f.session, "", "Idempotency-Key", "k1")
	if r, err := send(t.Context(), "POST", checkout.text("paymentUrl"), "", "outcome=paid", "Content-Type", "application/x-www-form-urlencoded"); err != nil || r.status >= 400 {
		t.Fatalf("pay: %v %d %s", err, r.status, r.body)
	}
	booking := at.Booking + "/v1/bookings/" + checkout.text("bookingId")
	var tickets []map[string]any
	eventually(t, 20*time.Second, "two tickets", func() bool {
		var doc struct{ Tickets []map[string]any }
		_ = json.Unmarshal([]byte(call(t, 200, "GET", booking, f.session, "").body), &doc)
		tickets = doc.Tickets
		return len(tickets) == 2
	})
	code := func(i int) string { s, _ := tickets[i]["code"].(string); return s }
	id := func(i int) string { s, _ := tickets[i]["ticketId"].(string); return s }
	scan := func(want int, token, code, show string, header ...string) reply {
		t.Helper()
		body, _ := json.Marshal(map[string]string{"code": code, "showtimeId": show})
		return call(t, want, "POST", at.Booking+"/v1/tickets/scan", token, string(body), header...)
	}
	offline := newScanner(t, call(t, 200, "GET", at.Booking+"/.well-known/ticket-keys.json", "", "").body)
	if got := offline.read(t, code(0)); got.showtime != show || got.seat != tickets[0]["seat"] || strings.ReplaceAll(id(0), "-", "") != got.id {
		t.Errorf("the code says %+v", got)
	}
	if r := scan(200, at.OperatorToken, code(0), show, "Idempotency-Key", "s1"); r.text("result") != "valid" || r.text("enteredBy") == "" || r.text("seat") != "F5" {
		t.Errorf("%s", r.body)
	}
	if r := scan(200, at.OperatorToken, code(0), show, "Idempotency-Key", "s1"); r.text("result") != "valid" {
		t.Errorf("the same scan: %s", r.body)
	}
	if r := scan(200, at.OperatorToken, code(0), show); r.text("result") != "already-in" {
		t.Errorf("again: %s", r.body)
	}
	if other := showtime(t, at.Booking, "stadium"); other != show {
		if r := scan(200, at.OperatorToken, code(1), other); r.text("result") != "wrong-showtime" || r.text("showtimeId") != show {
			t.Errorf("at the other door: %s", r.body)
		}
	}
	call(t, 200, "POST", booking+"/refund", at.OperatorToken, `{"tickets":["`+id(1)+`"]}`)
	if r := scan(200, at.OperatorToken, code(1), show); r.text("result") != "refunded" {
		t.Errorf("given back: %s", r.body)
	}
	list := call(t, 200, "GET", at.Booking+"/v1/showtimes/"+show+"/revoked-tickets", at.OperatorToken, "").body
	if revoked := offline.list(t, list); len(revoked) != 1 || revoked[0] != id(1) {
		t.Errorf("the list names %v, not %s", revoked, id(1))
	}

	// Nobody else scans, and nothing else is let in.
	scan(401, "", code(0), show)
	scan(401, f.session, code(0), show)
	scan(422, at.OperatorToken, strings.Map(func(r rune) rune { // another ticket's letters
		if r == 'A' {
			return 'B'
		}
		return r
	}, code(0)), show)
	scan(422, at.OperatorToken, "UT1", show)
	scan(404, at.OperatorToken, code(0), "no-such-show")
	scan(400, at.OperatorToken, "", show)
	scan(400, at.OperatorToken, strings.Repeat("A", 600), show)
	call(t, 400, "POST", at.Booking+"/v1/tickets/scan", at.OperatorToken, `{"code":"A","showtimeId":"`+show+`","force":true}`)
	call(t, 401, "GET", at.Booking+"/v1/showtimes/"+show+"/revoked-tickets", "", "")
	call(t, 404, "GET", at.Booking+"/v1/showtimes/"+url.PathEscape("no such")+"/revoked-tickets", at.OperatorToken, "")
}

// scanner is a program of somebody else's: it has read the README and the keys.
type scanner map[string]ed25519.PublicKey

func newScanner(t *testing.T, jwks string) scanner {
	t.Helper()
	var set struct {
		Keys []struct{ Kid, X, Crv string }
	}
	if err := json.Unmarshal([]byte(jwks), &set); err != nil || len(set.Keys) == 0 {
		t.Fatalf("%s: %v", jwks, err)
	}
	s := scanner{}
	for _, k := range set.Keys {
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || k.Crv != "Ed25519" {
			t.Fatalf("%s", jwks)
		}
		s[k.Kid] = x
	}
	return s
}

type codeSays struct{ id, showtime, seat string }

func (s scanner) read(t *testing.T, code string) codeSays {
	t.Helper()
	rest, ok := strings.CutPrefix(code, "UT1")
	data, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(rest)
	if !ok || err != nil || len(data) < 85 {
		t.Fatalf("%q: %v", code, err)
	}
	body, sig := data[:len(data)-64], data[len(data)-64:]
	if !ed25519.Verify(s[hex.EncodeToString(body[:4])], append([]byte("usher ticket 1\n"), body...), sig) {
		t.Fatalf("%q is not signed", code)
	}
	n := int(body[20])
	return codeSays{id: hex.EncodeToString(body[4:20]), showtime: string(body[21 : 21+n]), seat: string(body[21+n:])}
}

func (s scanner) list(t *testing.T, token string) []string {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatal(token)
	}
	var header struct{ Kid, Alg string }
	var claims struct{ Revoked []string }
	for i, v := range []any{&header, &claims} {
		data, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(data, v) != nil {
			t.Fatal(token)
		}
	}
	sig, _ := base64.RawURLEncoding.DecodeString(parts[2])
	if header.Alg != "EdDSA" || !ed25519.Verify(s[header.Kid], []byte(parts[0]+"."+parts[1]), sig) {
		t.Fatalf("the list is not signed: %s", token)
	}
	return claims.Revoked
}
