package configs

import (
	"fmt"
	"sort"
	"strings"

	yaml3 "go.yaml.in/yaml/v3"
)

// Problem is one thing wrong with a configuration.
type Problem struct {
	Key  string // the key, or the environment variable's name; "" for the file itself
	Line int    // in the file; 0 when it does not stand there
	Text string
}

func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Key != "" {
		b.WriteString(p.Key + " ")
	}
	return b.String() + p.Text
}

// Problems is everything wrong with a configuration.
type Problems struct{ list []Problem }

// List returns them, in the order of the file, then by key.
func (p *Problems) List() []Problem { return p.list }

func (p *Problems) Error() string {
	if len(p.list) == 1 {
		return "configuration: " + p.list[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "configuration: %d problems:", len(p.list))
	for _, one := range p.list {
		b.WriteString("\n  " + one.String())
	}
	return b.String()
}

func (p *Problems) sort() {
	sort.SliceStable(p.list, func(i, j int) bool {
		a, b := p.list[i], p.list[j]
		switch {
		case a.Line != b.Line && a.Line > 0 && b.Line > 0:
			return a.Line < b.Line
		case (a.Line > 0) != (b.Line > 0):
			return a.Line > 0
		}
		return a.Key < b.Key
	})
}

// readLines notes each key's line, and reports what is not YAML, a key that
// stands twice, and what would be ignored silently: a second document.
func readLines(data []byte, lines map[string]int) []Problem {
	var problems []Problem
	dec := yaml3.NewDecoder(strings.NewReader(string(data)))
	var doc yaml3.Node
	if err := dec.Decode(&doc); err != nil {
		if err.Error() == "EOF" { // an empty file: every default
			return nil
		}
		return []Problem{{Text: "the file is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	if dec.Decode(new(yaml3.Node)) == nil {
		problems = append(problems, Problem{Text: "the file holds a second YAML document; there must be one"})
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind == yaml3.ScalarNode && doc.Content[0].Tag == "!!null" {
		return problems
	}
	if doc.Content[0].Kind != yaml3.MappingNode {
		return append(problems, Problem{Line: doc.Content[0].Line, Text: "the file must be a group of keys"})
	}
	var walk func(prefix string, n *yaml3.Node)
	walk = func(prefix string, n *yaml3.Node) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := prefix + n.Content[i].Value
			if first, twice := lines[key]; twice {
				problems = append(problems, Problem{Key: key, Line: n.Content[i].Line, Text: fmt.Sprintf("stands twice, first in line %d", first)})
			}
			lines[key] = n.Content[i].Line
			if v := n.Content[i+1]; v.Kind == yaml3.MappingNode {
				walk(key+".", v)
			}
		}
	}
	walk("", doc.Content[0])
	return problems
}

// suggest finds the name most like the one given, for a slip of the keyboard.
func suggest(name string, names []string) string {
	best, bestAt := "", 4
	for _, n := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(n)); d < bestAt {
			best, bestAt = n, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j]+1, last+1)
		}
	}
	return row[len(b)]
}
