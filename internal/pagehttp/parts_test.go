package pagehttp

import (
	"strings"
	"testing"
	"testing/fstest"
)

// A script in parts is one file in one scope, in the order of the parts' names.
func TestAScriptInParts(t *testing.T) {
	t.Parallel()
	a, err := NewAssets("/assets", fstest.MapFS{
		"room.js/20-b.js": {Data: []byte("b();\n")}, "room.js/10-a.js": {Data: []byte("const a = 1; // no newline")}, "other.js": {Data: []byte("x")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(a.byName["room.js"].body), "(() => {\n\"use strict\";\nconst a = 1; // no newline\nb();\n\n})();\n"; got != want {
		t.Errorf("joined to %q, want %q", got, want)
	}
	if url, err := a.URL("room.js/10-a.js"); err == nil {
		t.Errorf("a part has the address %s of its own", url)
	}
	_, err = NewAssets("/assets", fstest.MapFS{"x.js/1.js": {}}, fstest.MapFS{"x.js": {Data: []byte("x")}})
	if err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a file beside a folder of its name: %v", err)
	}
}
