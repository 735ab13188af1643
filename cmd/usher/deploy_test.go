package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"usher/configs"
)

// Without a container engine at hand, what can be checked: the file is YAML
// that says what it should, and every role starts from the configuration in it.
func TestCompose(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Services map[string]struct {
			Image       string
			Command     any
			Secrets     []string
			Volumes     []string
			Environment map[string]string
			Healthcheck struct{ Test []string }
			ReadOnly    bool           `yaml:"read_only"`
			DependsOn   map[string]any `yaml:"depends_on"`
			Grace       string         `yaml:"stop_grace_period"`
		}
		Secrets map[string]struct{ File string }
		Configs map[string]struct{ File string }
		Volumes map[string]any
	}
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "redis", "migrate", "edge", "booking", "sandbox"} {
		s, ok := doc.Services[name]
		if !ok {
			t.Errorf("there is no service %s", name)
		}
		if name != "migrate" && len(s.Healthcheck.Test) == 0 {
			t.Errorf("%s has no health check", name)
		}
		for _, secret := range s.Secrets {
			if doc.Secrets[secret].File == "" {
				t.Errorf("%s wants the secret %s, which there is not", name, secret)
			}
		}
		for other := range s.DependsOn {
			if _, ok := doc.Services[other]; !ok {
				t.Errorf("%s depends on %s, which there is not", name, other)
			}
		}
	}
	redis, _ := doc.Services["redis"].Command.([]any)
	if !slices.Contains(redis, any("noeviction")) || !slices.Contains(redis, any("--appendonly")) {
		t.Errorf("redis: %v", redis)
	}

	config, err := os.ReadFile("../../" + doc.Configs["usher"].File)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name := range doc.Secrets {
		text := strings.Repeat("s", 40)
		switch name {
		case "postgres-url":
			text = "postgres://usher:x@postgres:5432/usher"
		case "redis-url":
			text = "redis://redis:6379"
		case "operators":
			text = "operator operator sha256:" + strings.Repeat("0", 64)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "usher.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(config), "/run/secrets", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"edge", "booking", "sandbox"} {
		var env []string
		for k, v := range doc.Services[role].Environment {
			env = append(env, k+"="+v)
		}
		c, err := configs.Load(configs.Source{File: file, Environ: env, Role: role})
		if err != nil {
			t.Errorf("%s: %v", role, err)
			continue
		}
		if role == "booking" && (c.Pass.KeysFile != "" || c.Pass.JWKSURL == "") {
			t.Error("booking holds the signing key")
		}
		if role == "sandbox" {
			// A practice payment that a restart forgets is a booking that waits for ever.
			volume, _, found := strings.Cut(strings.Join(doc.Services[role].Volumes, ""), ":"+filepath.Dir(c.Sandbox.StateFile))
			if _, declared := doc.Volumes[volume]; c.Sandbox.StateFile == "" || !found || !declared {
				t.Errorf("the state file %q is on no volume (%v)", c.Sandbox.StateFile, doc.Services[role].Volumes)
			}
		}
		if len(c.Operators) != 1 {
			t.Errorf("operators: %v", c.Operators)
		}
		if !doc.Services[role].ReadOnly || doc.Services[role].Grace != "20s" {
			t.Errorf("%s: not read only, or killed too early", role)
		}
	}
}

func TestKeysCommands(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys.json")
	flag := "--file=" + file
	if out, code := usher(t, nil, "keys", "list", flag); code == 0 || !strings.Contains(out, "usher keys new") {
		t.Errorf("exit %d: %s", code, out)
	}
	if out := mustUsher(t, nil, "keys", "new", flag); strings.Count(out, "signing") != 1 {
		t.Error(out)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v %v", st.Mode(), err)
	}
	mustUsher(t, nil, "keys", "new", "--if-missing", flag)
	if out := mustUsher(t, nil, "keys", "list", flag); strings.Count(out, "\n") != 1 {
		t.Error(out)
	}
	if out := mustUsher(t, nil, "keys", "new", flag); !strings.Contains(out, "signs from") || strings.Count(out, "signing") != 1 {
		t.Error(out)
	}
	if out := mustUsher(t, nil, "keys", "rotate", flag); !strings.Contains(out, "published until ") || strings.Count(out, "signing") != 1 || strings.Count(out, "signs from") != 1 {
		t.Error(out)
	}
	// The key of before was published a moment ago: it waits until verifiers have it.
	if out := mustUsher(t, nil, "keys", "rotate", "--publish-first=0s", flag); strings.Count(out, "signing") != 1 || strings.Contains(out, "signs from") {
		t.Error(out)
	}
	if _, code := usher(t, nil, "keys", "rotate", "--publish-first=-1s", flag); code == 0 {
		t.Error("a key was to sign before it was made")
	}
	if _, code := usher(t, nil, "keys", "rotate", "--overlap=1m", flag); code == 0 {
		t.Error("an overlap shorter than a pass' life was taken")
	}
	if err := os.WriteFile(file, []byte(`{"keys":[{"kid":"a","seed":"x"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := usher(t, nil, "keys", "new", flag); code == 0 || !strings.Contains(out, "seed") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"version"}, 0, "usher "},
		{[]string{"--help"}, 0, "virtual waiting room"},
		{[]string{"nonsense"}, 2, "nonsense"},
		{[]string{"edge"}, 1, "redis.url is needed by edge"},
		{[]string{"migrate", "up"}, 1, "which database"},
		{[]string{"event", "apply", "-f", "/nowhere.yaml"}, 2, "nowhere"},
		{[]string{"room", "pause", "cinema", "--admin=http://127.0.0.1:1", "--token=x"}, 1, "nobody answers"},
		{[]string{"health", "--admin=http://127.0.0.1:1"}, 1, "refused"},
		{[]string{"audit", "--data=/nowhere"}, 1, "no usher dev has kept"},
	} {
		if out, code := usher(t, []string{"XDG_CACHE_HOME=" + t.TempDir()}, c.args...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("usher %v: exit %d, want %d\n%s", c.args, code, c.code, out)
		}
	}
}
