package configs

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	yaml3 "go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the golden files anew")

// What an operator reads when a file is wrong is part of the product: every
// problem at once, with key and line.
func TestGoldenProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		src  Source
	}{
		{"bad", Source{File: "testdata/bad.yaml", Environ: []string{"USHER_EGDE_ADDR=:1", "USHER_BOOKING_LANE_QUEUE=many", "HOME=/"}}},
		{"mixed", Source{File: "testdata/mixed.yaml"}},
		{"rules", Source{File: "testdata/rules.yaml"}},
		{"needs-edge", Source{Role: "edge"}},
		{"needs-booking", Source{Role: "booking"}},
		{"needs-sandbox", Source{Role: "sandbox"}},
		{"twice", Source{File: "testdata/twice.yaml"}},
		{"notyaml", Source{File: "testdata/notyaml.yaml"}},
		{"list", Source{File: "testdata/list.yaml"}},
		{"nofile", Source{File: "testdata/nofile.yaml"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(c.src)
			var p *Problems
			if !errors.As(err, &p) {
				t.Fatalf("want *Problems, got %v", err)
			}
			golden := filepath.Join("testdata", c.name+".golden")
			got := err.Error() + "\n"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestStrongerSourcesWin(t *testing.T) {
	t.Parallel()
	file := write(t, "edge: {addr: \":1\", publicURL: http://file.example}\nbooking: {addr: \":1\", lanes: 3}\n")
	c, err := Load(Source{
		Base: map[string]any{"edge.addr": ":0", "admin.addr": ":5"}, File: file,
		Environ:   []string{"USHER_BOOKING_ADDR=:2", "USHER_EDGE_PUBLIC_URL=http://env.example", "USHER_EDGE_CLAIM_WINDOW=30s", "USHER_HTTP_TRUSTED_PROXIES=10.0.0.1, 10.1.0.0/16"},
		Overrides: map[string]any{"edge.publicURL": "http://flag.example"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(c.Edge.Addr, c.Admin.Addr, c.Booking.Addr, c.Booking.Lanes, c.Edge.PublicURL, c.Edge.ClaimWindow, c.HTTP.TrustedProxies, c.Sandbox.Addr)
	if want := ":1 :5 :2 3 http://flag.example 30s [10.0.0.1 10.1.0.0/16] :8082\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDefaultsKeepTheRules(t *testing.T) {
	t.Parallel()
	c := Default()
	if err := c.Validate(""); err != nil {
		t.Fatal(err)
	}
}

// The sample names every key there is, and no other.
func TestSampleNamesEveryKey(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("usher.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	if p := readLines(data, lines); len(p) > 0 {
		t.Fatal(p)
	}
	var c Config
	for _, f := range fieldsOf(&c) {
		if lines[f.key] == 0 && (!f.file || lines[f.key+"File"] == 0) {
			t.Errorf("the sample lacks %s", f.key)
		}
	}
	// Its secrets' files do not exist beside it: they are all it may be refused for.
	_, err = Load(Source{File: "usher.yaml"})
	var p *Problems
	if !errors.As(err, &p) {
		t.Fatal(err)
	}
	for _, one := range p.List() {
		if !strings.Contains(one.Text, "no such file") {
			t.Error(one)
		}
	}
}

func TestSecretsFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"place":  "# rotated in May\n" + strings.Repeat("a", 32) + "\n\n" + strings.Repeat("b", 32) + "\n",
		"url":    "postgres://usher:hunter2@db/usher\n",
		"c.yaml": "edge: {placeSecretsFile: place}\npostgres: {urlFile: url}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(Source{File: filepath.Join(dir, "c.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Edge.PlaceSecrets) != 2 || c.Edge.PlaceSecrets[0].Reveal() != strings.Repeat("a", 32) {
		t.Errorf("place secrets: %d", len(c.Edge.PlaceSecrets))
	}
	if c.Postgres.URL.Reveal() != "postgres://usher:hunter2@db/usher" {
		t.Error("the address was not read from its file")
	}
}

// usher.yaml promises that a relative name is relative to it, not to the folder
// a process happens to start in.
func TestFileNamesAreBesideTheFile(t *testing.T) {
	t.Parallel()
	file := write(t, "pass: {keysFile: secrets/keys.json}\nsandbox: {stateFile: payments.jsonl}\n")
	dir := filepath.Dir(file)
	c, err := Load(Source{File: file})
	if err != nil {
		t.Fatal(err)
	}
	if c.Pass.KeysFile != filepath.Join(dir, "secrets/keys.json") || c.Sandbox.StateFile != filepath.Join(dir, "payments.jsonl") {
		t.Errorf("got %s and %s", c.Pass.KeysFile, c.Sandbox.StateFile)
	}
	c, err = Load(Source{File: file, Environ: []string{"USHER_PASS_KEYS_FILE=/keys/k.json", "USHER_SANDBOX_STATE_FILE="}})
	if err != nil {
		t.Fatal(err)
	}
	if c.Pass.KeysFile != "/keys/k.json" || c.Sandbox.StateFile != "" {
		t.Errorf("absolute and empty: got %q and %q", c.Pass.KeysFile, c.Sandbox.StateFile)
	}
}

// A secret must not be seen by whatever road a configuration is printed.
func TestSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	const place, password = "place-secret-of-thirty-two-bytes", "hunter2"
	c := Default()
	c.Edge.PlaceSecrets = []Secret{place}
	c.Booking.SessionSecret = place
	c.Payment.APIKey = place
	c.Postgres.URL = "postgres://usher:" + password + "@db/usher?sslpassword=" + password
	c.Redis.URL = "redis://:" + password + "@redis:6379"
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "config", c, "one", c.Booking.SessionSecret, "url", c.Postgres.URL)
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "config", c, "one", c.Booking.SessionSecret, "url", c.Postgres.URL)
	js, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	ym, err := yaml3.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for road, text := range map[string]string{
		"%v": fmt.Sprintf("%v", c), "%+v": fmt.Sprintf("%+v", c), "%#v": fmt.Sprintf("%#v", c), "%s": fmt.Sprintf("%s", c.Edge.PlaceSecrets),
		"%q": fmt.Sprintf("%q", c.Booking.SessionSecret), "%x": fmt.Sprintf("%x", c.Booking.SessionSecret),
		"json": string(js), "yaml": string(ym), "slog": logged.String(),
		"dsn": StoreURL("host=db password=" + password).String(),
	} {
		if strings.Contains(text, place) || strings.Contains(text, password) || strings.Contains(text, fmt.Sprintf("%x", place)) {
			t.Errorf("%s shows a secret: %s", road, text)
		}
	}
	if !strings.Contains(string(js), "@db/usher") {
		t.Errorf("an address should show where it leads: %s", js)
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	secret := write(t, strings.Repeat("s", 32))
	text := "log: {level: info}\nbooking: {sessionSecretFile: " + secret + "}\n"
	file := write(t, text)
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))
	l, err := NewLive(Source{File: file})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what string, changed bool, level, mention string) {
		t.Helper()
		out.Reset()
		if got := l.reload(log); got != changed {
			t.Errorf("%s: reloaded %v, want %v", what, got, changed)
		}
		if l.Get().Log.Level != level {
			t.Errorf("%s: level %s, want %s", what, l.Get().Log.Level, level)
		}
		if !strings.Contains(out.String(), mention) || (mention == "" && out.Len() > 0) {
			t.Errorf("%s: logged %q, want %q", what, out.String(), mention)
		}
	}
	expect("nothing changed", false, "info", "")
	rewrite(t, file, strings.Replace(text, "info", "debug", 1))
	expect("good change", true, "debug", "log.level")
	rewrite(t, file, strings.Replace(text, "info", "loud", 1))
	expect("bad change", false, "debug", "refused")
	expect("the same bad change again", false, "debug", "")
	rewrite(t, file, "log: {level: error}\nbooking: {lanes: 3, sessionSecretFile: "+secret+"}\n")
	expect("a key that needs a restart", true, "error", "booking.lanes")
	rewrite(t, secret, strings.Repeat("t", 32))
	expect("a secret's file changed", true, "error", "booking.sessionSecret")
	rewrite(t, secret, "short")
	expect("a secret's file became bad", false, "error", "refused")
	if l.Get().Booking.SessionSecret.Reveal() != strings.Repeat("t", 32) {
		t.Error("the old secret did not stay")
	}
}

func TestWatchSeesAReplacedFile(t *testing.T) {
	t.Parallel()
	file := write(t, "log: {level: info}\n")
	l, err := NewLive(Source{File: file})
	if err != nil {
		t.Fatal(err)
	}
	swapped := make(chan string, 8)
	done := make(chan error, 1)
	ctx := t.Context()
	go func() {
		done <- l.Watch(ctx, 5*time.Millisecond, slog.New(slog.DiscardHandler), func(c *Config) { swapped <- c.Log.Level })
	}()
	next := write(t, "log: {level: warn}\n")
	if err := os.Rename(next, file); err != nil { // as an editor, or a mounted secret, does
		t.Fatal(err)
	}
	select {
	case level := <-swapped:
		if level != "warn" {
			t.Errorf("level %s", level)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the change was not seen")
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "usher.yaml")
	rewrite(t, path, text)
	return path
}

func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
