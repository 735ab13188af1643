package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The integrator's chapter is run as it stands in the README, so that it cannot
// become untrue.
func TestReadmeIntegrator(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)<!-- tested: integrator -->\n```sh\n(.*?)```").FindSubmatch(text)
	if m == nil {
		t.Fatal("README.md has no tested block")
	}
	for _, tool := range []string{"bash", "curl", "node"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s is needed; `make deps` installs it", tool)
		}
	}
	_, at := startDev(t, nil)
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", string(m[1]))
	cmd.Env = append(cleanEnv(), "EDGE="+at.Edge, "BOOKING="+at.Booking)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[1], "a good pass for cinema") || !strings.HasSuffix(lines[2], "seats free") {
		t.Errorf("the walk printed\n%s", out)
	}
	for _, ticket := range lines[len(lines)-2:] {
		if !regexp.MustCompile(`^[A-Z]+\d+ \S{16,}$`).MatchString(ticket) {
			t.Errorf("not a ticket: %q", ticket)
		}
	}
}
