package queue

import (
	"errors"
	"testing"

	"usher/queue/customer"
)

var alice = customer.Customer{Issuer: "https://shop.example", Subject: "alice"}

// One customer has one place, from however many browsers; each has passes of its own
// binding, and all are one session.
func TestAKnownFanHasOnePlaceOnAllDevices(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 60_000, 10)
	join(t, l, room, "somebody")
	phone, err := l.Join(t.Context(), room, Fan{ID: "phone", Bound: true, Known: alice})
	if err != nil || !phone.Created {
		t.Fatalf("%+v, %v", phone, err)
	}
	join(t, l, room, "another")
	laptop, err := l.Join(t.Context(), room, Fan{ID: "laptop", Bound: true, Known: alice})
	if err != nil || laptop.Created || laptop.PlaceID != phone.PlaceID || laptop.Position != 2 {
		t.Fatalf("%+v, %v", laptop, err)
	}
	if laptop.Token == phone.Token {
		t.Error("both browsers have one token, so one binding")
	}
	for fan, token := range map[string]Token{"phone": phone.Token, "laptop": laptop.Token} {
		for other := range map[string]bool{"phone": true, "laptop": true, "thief": true} {
			binding, bound, err := l.Bond(room, token, []string{other})
			if err != nil || !bound || (binding != "") != (fan == other) {
				t.Errorf("%s's token, shown by %s: %q, %t, %v", fan, other, binding, bound, err)
			}
		}
		if !l.IsKnown(room, token) || l.Owner(room, token, []string{"phone", "laptop"}) != "" {
			t.Errorf("%s's token is taken for an ordinary one", fan)
		}
	}
	step(t, l, room)
	if s := status(t, l, room, phone.Token).Status; s != Called {
		t.Fatalf("%s", s)
	}
	a := claim(t, l, room, laptop.Token) // whoever comes first
	b := claim(t, l, room, phone.Token)
	if a.JTI != b.JTI || a.Customer != b.Customer || a.BindingHash == b.BindingHash || !a.First || b.First {
		t.Errorf("one session for both, each bound to its browser:\n%+v\n%+v", a, b)
	}
	if s := status(t, l, room, phone.Token).Status; s != Admitted {
		t.Errorf("the other browser sees %s", s)
	}
	// The token alone brings the customer's place again, not one of the browser's.
	again, err := l.Join(t.Context(), room, Fan{Place: laptop.Token})
	if err != nil || again.PlaceID != phone.PlaceID || again.Token != laptop.Token {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestACustomerIsTheSameAcrossRoomsAndNobodyElse(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	place := func(room string, f Fan) place {
		t.Helper()
		p, err := l.identify(room, f)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	base := place("cinema", Fan{ID: "a", Bound: true, Known: alice})
	if other := place("stadium", Fan{ID: "b", Known: alice}); other.customer != base.customer || other.member == base.member {
		t.Error("another room: another customer, or the same place")
	}
	for name, f := range map[string]Fan{
		"another customer":       {ID: "a", Known: customer.Customer{Issuer: alice.Issuer, Subject: "bob"}},
		"another issuer":         {ID: "a", Known: customer.Customer{Issuer: "https://other.example", Subject: "alice"}},
		"the border moved":       {ID: "a", Known: customer.Customer{Issuer: alice.Issuer + "a", Subject: "lice"}},
		"nobody known":           {ID: "a"},
		"a fan id like the name": {ID: alice.Issuer + alice.Subject},
	} {
		if p := place("cinema", f); p.customer == base.customer || p.member == base.member {
			t.Errorf("%s is the same", name)
		}
	}
	if got, err := l.verify("cinema", l.sign(base)); err != nil || got != base {
		t.Errorf("the token says %+v, %v", got, err)
	}
}

func TestAKnownFanIsRevokedByCustomer(t *testing.T) {
	t.Parallel()
	l := newLine(t, dial(t, ""))
	room := openRoom(t, l, 0, 10)
	v, err := l.Join(t.Context(), room, Fan{ID: "phone", Bound: true, Known: alice})
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.verify(room, v.Token)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.PutRevoked(t.Context(), room, Revoked{Version: 1, Customers: map[string]bool{p.customerID(): true}}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Join(t.Context(), room, Fan{ID: "laptop", Known: alice}); !errors.Is(err, ErrRevoked) {
		t.Errorf("from another browser: %v", err)
	}
}
