package catalog

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"usher/booking/bookingtest"
)

func TestEveryStatementPreparesAgainstTheSchema(t *testing.T) {
	t.Parallel()
	bookingtest.Prepares(t, statements)
}

// A statement that is not in the list is prepared by no test.
func TestEveryStatementIsListed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	used, inline := regexp.MustCompile(`\bsql[A-Z]\w*`), regexp.MustCompile("(?:Exec|Query|QueryRow)\\([\\w.]+, `")
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range used.FindAllString(string(text), -1) {
			if statements[sql] == "" {
				t.Errorf("%s: %s is not listed", name, sql)
			}
		}
		if found := inline.FindString(string(text)); found != "" {
			t.Errorf("%s: a statement without a name: %s", name, found)
		}
	}
}
