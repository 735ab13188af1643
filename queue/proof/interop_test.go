package proof

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"
)

// altcha is what altcha-lib, and the page's own solver, made of a challenge.
type altcha struct {
	Challenge                                    Challenge
	ByTheirs, ByOurs                             string
	TheirsVerified, OursVerified, ForgedVerified bool
}

// askAltcha runs npm altcha-lib, which the deps of `make test` install; without it
// the test is left out and says so.
func askAltcha(t *testing.T, question map[string]any) (a altcha) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is missing; make deps-test installs it")
	}
	if _, err := os.Stat("testdata/altcha/node_modules/altcha-lib"); err != nil {
		t.Skip("altcha-lib is missing; make deps-test installs it, or: npm ci --prefix queue/proof/testdata/altcha")
	}
	question["solver"] = "../../../queuehttp/static/proof.js"
	in, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "interop.mjs")
	cmd.Dir, cmd.Stdin = "testdata/altcha", bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderrOf(err))
	}
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return a
}

func stderrOf(err error) string {
	if e, ok := err.(*exec.ExitError); ok { //nolint:errorlint // exec gives it unwrapped
		return string(e.Stderr)
	}
	return ""
}

const sharedKey = "a key that both sides know, as text"

func TestQ20_AltchaLibSolvesAndVerifiesOurChallenges(t *testing.T) {
	t.Parallel()
	i := &Issuer{keys: [][]byte{[]byte(sharedKey)}, now: time.Now}
	c := i.Issue("cinema", both, 3000)
	a := askAltcha(t, map[string]any{"challenge": c, "hmacKey": sharedKey})
	for by, payload := range map[string]string{"altcha-lib": a.ByTheirs, "the page": a.ByOurs} {
		paid, err := i.Verify("cinema", me, payload)
		if err != nil || paid.Mark != c.Challenge[:digestHex] {
			t.Errorf("solved by %s: %+v, %v", by, paid, err)
		}
	}
	if !a.TheirsVerified || !a.OursVerified || a.ForgedVerified {
		t.Errorf("altcha-lib verifies our challenge: %+v", a)
	}
}

func TestQ20_WeSolveAndVerifyAltchaLibsChallenges(t *testing.T) {
	t.Parallel()
	i := &Issuer{keys: [][]byte{[]byte(sharedKey)}, now: time.Now}
	a := askAltcha(t, map[string]any{"hmacKey": sharedKey, "create": map[string]any{
		"maxnumber": 3000, "expires": time.Now().Add(2 * time.Minute).Unix(),
		"params": map[string]string{"for": whose("cinema", me), "cost": "3000"},
	}})
	if !a.OursVerified || a.ForgedVerified {
		t.Errorf("our solution of its challenge: %+v", a)
	}
	for by, payload := range map[string]string{"altcha-lib": a.ByTheirs, "the page": a.ByOurs} {
		if paid, err := i.Verify("cinema", me, payload); err != nil || paid.Cost != 3000 {
			t.Errorf("its challenge, solved by %s: %+v, %v", by, paid, err)
		}
	}
	bare := askAltcha(t, map[string]any{"hmacKey": sharedKey, "create": map[string]any{"maxnumber": 50, "expires": time.Now().Add(time.Minute).Unix()}})
	if _, err := i.Verify("cinema", me, bare.ByOurs); err == nil {
		t.Error("a challenge for nobody was taken") // signed by a key of ours, perhaps for another purpose
	}
}
