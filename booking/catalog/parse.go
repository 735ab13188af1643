package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	largestFile  = 1 << 20
	mostItems    = 500     // rooms, venues, events, showtimes of an event: each
	mostSeats    = 200_000 // of a venue
	mostInFile   = 500_000 // seats of all its venues
	earliestYear = 2000
	latestYear   = 2100
)

var slug = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Parse reads a catalog file and lays out its seats. name is only for messages. The
// error is Faults, with everything that is wrong.
func Parse(name string, data []byte) (File, error) {
	r := &reader{name: name}
	f := File{Name: name}
	if root := r.document(data); root != nil {
		r.file(root, &f)
	}
	if len(r.faults) > 0 {
		return File{}, r.faults.sorted()
	}
	sum := sha256.Sum256(data)
	f.Digest = hex.EncodeToString(sum[:])
	return f, nil
}

var syntaxLine = regexp.MustCompile(`^yaml: line (\d+): `)

func (r *reader) document(data []byte) *yaml.Node {
	if len(data) > largestFile {
		r.fault(nil, "", "the file has %d bytes, at most %d are read", len(data), largestFile)
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		r.fault(nil, "", "the file is empty")
		return nil
	}
	if err == nil {
		if err = dec.Decode(&more); err == nil {
			r.fault(&more, "", "a second document begins here; a file holds one")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		line, text := 1, strings.TrimPrefix(err.Error(), "yaml: ")
		if m := syntaxLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1])
			text = err.Error()[len(m[0]):]
		}
		r.fault(&yaml.Node{Line: brokenLine(data, line)}, "", "this is not YAML: %s", text)
		return nil
	}
	if len(doc.Content) == 0 {
		r.fault(nil, "", "the file is empty")
		return nil
	}
	return doc.Content[0]
}

// brokenLine is the line after the longest beginning of the file that is YAML. The
// parser's own line is where the spoiled block began, far from what spoils it.
func brokenLine(data []byte, otherwise int) int {
	const patience = 4 << 20 // bytes parsed in all
	end := len(data)
	for spent := 0; end > 0 && spent < patience; spent += end {
		end = bytes.LastIndexByte(data[:end-1], '\n') + 1
		var n yaml.Node
		if yaml.Unmarshal(data[:end], &n) == nil {
			return bytes.Count(data[:end], []byte{'\n'}) + 1
		}
	}
	return otherwise
}

func (r *reader) file(root *yaml.Node, f *File) {
	o := r.object(root, "")
	each(o, "rooms", false, func(n *yaml.Node, path string) { f.Rooms = append(f.Rooms, r.room(n, path)) })
	each(o, "venues", false, func(n *yaml.Node, path string) { f.Venues = append(f.Venues, r.venue(n, path)) })
	each(o, "events", false, func(n *yaml.Node, path string) { f.Events = append(f.Events, r.event(n, path, f)) })
	o.done()
	if o.valid && len(f.Rooms)+len(f.Venues)+len(f.Events) == 0 && len(r.faults) == 0 {
		r.fault(root, "", "the file holds nothing: no rooms, no venues, no events")
	}
	seats := 0
	for _, v := range f.Venues {
		seats += len(v.Seats)
	}
	if seats > mostInFile {
		r.fault(root, "venues", "%d seats in one file, at most %d; divide it", seats, mostInFile)
	}
}

// each reads a list item by item.
func each(o *object, key string, required bool, read func(n *yaml.Node, path string)) {
	nodes := o.items(key, required)
	if len(nodes) > mostItems {
		o.fault(key, "has %d items, at most %d are allowed", len(nodes), mostItems)
		return
	}
	for i, n := range nodes {
		read(n, fmt.Sprintf("%s[%d]", o.at(key), i))
	}
}

// id reads a slug.
func (o *object) id(key string) string {
	s := o.text(key, true)
	if s != "" && !slug.MatchString(s) {
		o.fault(key, "is %q; small letters, digits and hyphens are allowed, at most 63", s)
		return ""
	}
	return s
}

// unique complains when seen has id already.
func (o *object) unique(id string, seen map[string]int) {
	if id == "" {
		return
	}
	if line, twice := seen[id]; twice {
		o.fault("id", "%q is already taken in line %d", id, line)
		return
	}
	seen[id] = o.node.Line
}

func absurd(t time.Time) bool { return t.Year() < earliestYear || t.Year() > latestYear }

func itoa(i int) string { return strconv.Itoa(i) }
func pad4(i int) string { return fmt.Sprintf("%04d", i) }
