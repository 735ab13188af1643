package sandbox

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// The example of the Standard Webhooks libraries: a provider that uses one of
// them is understood.
func TestSignatureAsOtherLibrariesMakeIt(t *testing.T) {
	t.Parallel()
	secret, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := Sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	secret, now, body := []byte("0123456789abcdef0123456789abcdef"), time.Unix(1_800_000_000, 999_999_999), []byte("{}")
	header := func(at time.Time, sig string) func(string) string {
		h := http.Header{}
		h.Set(HeaderID, "evt")
		h.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
		h.Set(HeaderSignature, sig)
		return h.Get
	}
	sign := func(at time.Time) string { return Sign(secret, "evt", at, body) }
	old, ahead := now.Add(-Tolerance), now.Add(Tolerance)
	for name, d := range map[string]struct {
		header func(string) string
		ok     bool
	}{
		"now":                    {header(now, sign(now)), true},
		"300 s old":              {header(old, sign(old)), true},
		"300 s ahead":            {header(ahead, sign(ahead)), true},
		"301 s old":              {header(old.Add(-time.Second), sign(old.Add(-time.Second))), false},
		"301 s ahead":            {header(ahead.Add(time.Second), sign(ahead.Add(time.Second))), false},
		"timestamp replaced":     {header(now, sign(old)), false},
		"among others":           {header(now, "v1a,zzz v1,AAAA "+sign(now)), true},
		"of a scheme we lack":    {header(now, "v2"+sign(now)[2:]), false},
		"not base64":             {header(now, "v1,***"), false},
		"empty":                  {header(now, ""), false},
		"no scheme":              {header(now, sign(now)[3:]), false},
		"a number with no value": {func(string) string { return "" }, false},
	} {
		id, err := Verify([][]byte{[]byte("another secret"), secret}, d.header, body, now)
		if (err == nil) != d.ok || (d.ok && id != "evt") {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
}
