package catalog

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader collects faults while a file is read; reading goes on after each, so
// that its author sees all of them at once.
type reader struct {
	name   string
	faults Faults
	ids    map[string]map[string]int // kind → id → line
}

// seen is the register of the ids of one kind.
func (r *reader) seen(kind string) map[string]int {
	if r.ids == nil {
		r.ids = map[string]map[string]int{}
	}
	if r.ids[kind] == nil {
		r.ids[kind] = map[string]int{}
	}
	return r.ids[kind]
}

func (r *reader) fault(n *yaml.Node, path, format string, args ...any) {
	line := 1
	if n != nil && n.Line > 0 {
		line = n.Line
	}
	r.faults = append(r.faults, Fault{File: r.name, Line: line, Path: path, Message: fmt.Sprintf(format, args...)})
}

// object is a mapping being read: each key asked for is thereby known, and done
// complains of the rest.
type object struct {
	r     *reader
	node  *yaml.Node
	path  string
	keys  map[string]*yaml.Node // to the values
	names []*yaml.Node          // the keys, in order
	asked []string
	valid bool
}

func (r *reader) object(n *yaml.Node, path string) *object {
	o := &object{r: r, node: n, path: path, keys: map[string]*yaml.Node{}}
	if n.Kind != yaml.MappingNode {
		r.fault(n, path, "must be a mapping of keys to values, not %s", kindOf(n))
		return o
	}
	o.valid = true
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if _, twice := o.keys[k.Value]; twice {
			r.fault(k, o.at(k.Value), "this key stands here twice")
			continue
		}
		o.keys[k.Value] = v
		o.names = append(o.names, k)
	}
	return o
}

func (o *object) at(key string) string {
	if o.path == "" {
		return key
	}
	return o.path + "." + key
}

func (o *object) fault(key, format string, args ...any) {
	n := o.keys[key]
	if n == nil {
		n = o.node
	}
	o.r.fault(n, o.at(key), format, args...)
}

// get is the value of key, or nil when it is missing, with a fault when it must not be.
func (o *object) get(key string, required bool) *yaml.Node {
	o.asked = append(o.asked, key)
	n := o.keys[key]
	if n == nil && required && o.valid {
		o.r.fault(o.node, o.at(key), "is missing")
	}
	return n
}

func (o *object) has(key string) bool { return o.keys[key] != nil }

// done complains of every key nobody asked for.
func (o *object) done() {
	for _, k := range o.names {
		if !slices.Contains(o.asked, k.Value) {
			known := slices.Clone(o.asked)
			slices.Sort(known)
			o.r.fault(k, o.at(k.Value), "unknown key; known here: %s", strings.Join(slices.Compact(known), ", "))
		}
	}
}

// text reads any scalar as it is written, so that 101 or 1-16 need no quotes.
func (o *object) text(key string, required bool) string {
	n := o.get(key, required)
	if n == nil {
		return ""
	}
	return o.r.text(n, o.at(key), required)
}

const longestText = 200

func (r *reader) text(n *yaml.Node, path string, required bool) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.fault(n, path, "must be a text, not %s", kindOf(n))
		return ""
	}
	s := strings.TrimSpace(n.Value)
	switch {
	case s == "" && required:
		r.fault(n, path, "must not be empty")
	case len(s) > longestText:
		r.fault(n, path, "is %d bytes long, at most %d are allowed", len(s), longestText)
		return ""
	case strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f }):
		r.fault(n, path, "must not hold control characters")
		return ""
	}
	return s
}

// choice reads one of a closed set; the first is the default.
func (o *object) choice(key string, allowed ...string) string {
	n := o.get(key, false)
	if n == nil {
		return allowed[0]
	}
	s := o.r.text(n, o.at(key), true)
	if s != "" && !slices.Contains(allowed, s) {
		o.fault(key, "is %q, must be one of %s", s, strings.Join(allowed, ", "))
	}
	return s
}

func (o *object) integer(key string, required bool, lo, hi, otherwise int64) int64 {
	n := o.get(key, required)
	if n == nil {
		return otherwise
	}
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil {
		o.fault(key, "must be a whole number, not %s", kindOf(n))
		return otherwise
	}
	if v < lo || v > hi {
		o.fault(key, "is %d, must be between %d and %d", v, lo, hi)
		return otherwise
	}
	return v
}

func (o *object) number(key string, lo, hi, otherwise float64) float64 {
	n := o.get(key, false)
	if n == nil {
		return otherwise
	}
	return o.r.number(n, o.at(key), lo, hi, otherwise)
}

func (r *reader) number(n *yaml.Node, path string, lo, hi, otherwise float64) float64 {
	v, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || (n.Tag != "!!int" && n.Tag != "!!float") || err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		r.fault(n, path, "must be a number, not %s", kindOf(n))
		return otherwise
	}
	if v < lo || v > hi {
		r.fault(n, path, "is %v, must be between %v and %v", v, lo, hi)
		return otherwise
	}
	return v
}

// farthest bounds every coordinate.
const farthest = 5000

// point reads [x, y].
func (r *reader) point(n *yaml.Node, path string, lo float64) [2]float64 {
	var p [2]float64
	if n.Kind != yaml.SequenceNode || len(n.Content) != 2 {
		r.fault(n, path, "must be two numbers as in [1, 2.5]")
		return p
	}
	for i, c := range n.Content {
		p[i] = r.number(c, fmt.Sprintf("%s[%d]", path, i), lo, farthest, max(lo, 0))
	}
	return p
}

func (o *object) point(key string, required bool, lo float64) [2]float64 {
	n := o.get(key, required)
	if n == nil {
		return [2]float64{max(lo, 0), max(lo, 0)}
	}
	return o.r.point(n, o.at(key), lo)
}

// items reads a list; what is not one is a fault.
func (o *object) items(key string, required bool) []*yaml.Node {
	n := o.get(key, required)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		o.fault(key, "must be a list, not %s", kindOf(n))
		return nil
	}
	if required && len(n.Content) == 0 {
		o.fault(key, "must not be empty")
	}
	return n.Content
}

// texts reads a list of texts, or one text.
func (o *object) texts(key string) []*yaml.Node {
	if n := o.keys[key]; n != nil && n.Kind == yaml.ScalarNode {
		o.get(key, false)
		if o.r.text(n, o.at(key), true) == "" {
			return nil
		}
		return []*yaml.Node{n}
	}
	nodes := o.items(key, false)
	return slices.DeleteFunc(slices.Clone(nodes), func(n *yaml.Node) bool {
		return o.r.text(n, o.at(key), true) == ""
	})
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (anchors and aliases are not read here)"
	}
	if n.Tag == "!!null" {
		return "nothing"
	}
	return strconv.Quote(n.Value)
}
