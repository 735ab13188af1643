package configs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const publicSet = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}` // RFC 8037, A.2

func TestIntegratorsAreRead(t *testing.T) {
	t.Parallel()
	file := write(t, `
edge:
  customers:
    "*": {issuer: https://shop.example, jwksURL: https://shop.example/jwks.json}
    cinema: {issuer: https://a.example, audience: tickets, required: true, jwksFile: set.json}
    stadium: {issuer: https://b.example, secretsFile: shared}
  returnTo:
    "*": [https://shop.example]
    cinema: [https://a.example/tickets, {url: "http://127.0.0.1:3000", handover: cookie}]
`)
	dir := filepath.Dir(file)
	secret := strings.Repeat("s", 32)
	for name, text := range map[string]string{"set.json": publicSet, "shared": "# ours\n" + secret + "\n\n" + secret + "2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, digest, err := load(Source{File: file})
	if err != nil {
		t.Fatal(err)
	}
	all, cinema, stadium := c.Edge.Customers["*"], c.Edge.Customers["cinema"], c.Edge.Customers["stadium"]
	if all.JWKSURL != "https://shop.example/jwks.json" || all.Required || cinema.Audience != "tickets" || !cinema.Required ||
		cinema.JWKS.Reveal() != publicSet || len(stadium.Secrets) != 2 || stadium.Secrets[1].Reveal() != secret+"2" {
		t.Errorf("%+v", c.Edge.Customers)
	}
	if got := fmt.Sprintf("%+v %#v", c.Edge.Customers, c.Edge.Customers); strings.Contains(got, secret) {
		t.Errorf("a secret is printed: %s", got)
	}
	if r := c.Edge.ReturnTo["cinema"]; len(r) != 2 || r[0] != (ReturnTo{"https://a.example/tickets", "post"}) || r[1] != (ReturnTo{"http://127.0.0.1:3000", "cookie"}) {
		t.Errorf("%+v", c.Edge.ReturnTo)
	}
	// What a file holds is a part of the configuration, and counts without a restart.
	if err := os.WriteFile(filepath.Join(dir, "shared"), []byte(secret+"3"), 0o600); err != nil {
		t.Fatal(err)
	}
	next, other, err := load(Source{File: file})
	if err != nil || other == digest {
		t.Errorf("a changed secret is not noticed: %v", err)
	}
	if live, restart := Changed(c, next); len(live) != 1 || live[0] != "edge.customers" || len(restart) != 0 {
		t.Errorf("live %v, after a restart %v", live, restart)
	}
}

func TestIntegratorsAreChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`customers: [a]`:         "must map a room",
		`customers: {cinema: x}`: `of room "cinema" must be a group`,
		`customers: {cinema: {jwksURL: "https://a.example"}}`:                          "issuer is missing",
		`customers: {cinema: {issuer: a}}`:                                             "needs its keys by one of",
		`customers: {cinema: {issuer: a, jwksURL: "https://a", secretsFile: nowhere}}`: "nowhere: no such file",
		`customers: {cinema: {issuer: a, jwksURL: "http://a.example"}}`:                "must be an https address",
		`customers: {cinema: {issuer: a, jwksURL: "https://u@a.example"}}`:             "must be an https address",
		`customers: {cinema: {issuer: a, secrets: [short]}}`:                           "secret 1 is shorter than 32",
		`customers: {cinema: {issuer: a, jwksFile: nowhere}}`:                          "no such file",
		`customers: {cinema: {issuer: a, isuer: b}}`:                                   `unknown key "isuer"`,
		`customers: {cinema: {issuer: 7}}`:                                             "issuer must be text",
		`customers: {cinema: {issuer: a, required: maybe, jwksURL: "https://a"}}`:      "required must be true or false",
		`returnTo: [a]`: "must map a room",
		`returnTo: {cinema: "https://a.example"}`:                         "must be a list of addresses",
		`returnTo: {cinema: ["http://a.example"]}`:                        "entry 1 (http://a.example): must be an https address",
		`returnTo: {cinema: ["https://u@a.example"]}`:                     "must be an https address",
		`returnTo: {cinema: [{url: "https://a.example", handover: get}]}`: "handover must be post or cookie",
		`returnTo: {cinema: [{address: "https://a.example"}]}`:            `unknown key "address"`,
		`returnTo: {cinema: [7]}`:                                         "must be an address",
	} {
		_, err := Load(Source{File: write(t, "edge:\n  "+text+"\n")})
		var p *Problems
		if !errors.As(err, &p) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "edge.") {
			t.Errorf("%s: %v", text, err)
		}
	}
	bad := write(t, "edge: {customers: {cinema: {issuer: a, jwksFile: set.json}}}\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(bad), "set.json"), []byte(`{"keys":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Source{File: bad}); err == nil || !strings.Contains(err.Error(), "the key set has no") {
		t.Errorf("%v", err)
	}
}
