package catalog

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"go.yaml.in/yaml/v3"
)

const (
	mostRows     = 500  // of a section
	mostInRow    = 2000 // seats
	mostSections = 500  // by one range of ids
)

// sections reads one item of the list of sections, which is several when it has ids.
func (c *venueContext) sections(n *yaml.Node, path string) {
	o := c.object(n, path)
	if !o.valid {
		return
	}
	ids, ring := c.ids(o)
	base := section{codes: o.seatCodes(c.codes), rowPitch: 1.1, price: o.price("price", !o.has("rows"))}
	label := o.text("label", false)
	if o.has("standing") {
		c.standing(o, &base, ring)
	} else {
		c.seated(o, &base)
	}
	byID := c.pricesByID(o, ids)
	c.marks(o)
	surfaces := c.surfaces(o, &base, len(ids))
	o.done()
	for i, id := range ids {
		s := base
		s.id, s.label = id, seatCode(label, id, "", "")
		if label == "" {
			s.label = id
		}
		if surfaces != nil {
			s.surface = surfaces[i]
		}
		if p := byID[id]; p != "" {
			s.price = p
			s.bands = slices.Clone(base.bands)
			for j := range s.bands {
				s.bands[j].price = p
			}
		}
		if s.standing > 0 || s.surface != nil {
			c.read = append(c.read, sectionRead{s, o})
		}
	}
}

func (c *venueContext) ids(o *object) (ids []string, ring bool) {
	ring = o.has("ids")
	key := "id"
	if ring {
		key = "ids"
		if o.has("id") {
			o.get("id", false)
			o.fault("id", "stands beside ids; only one of them may")
		}
	}
	text := o.text(key, true)
	switch {
	case text == "":
		return nil, ring
	case ring:
		var err error
		if ids, err = labels(text, mostSections); err != nil {
			o.fault(key, "%v", err)
			return nil, ring
		}
	case !sectionID.MatchString(text):
		o.fault(key, "is %q; letters and digits are allowed, at most 16", text)
		return nil, ring
	default:
		ids = []string{text}
	}
	return slices.DeleteFunc(ids, func(id string) bool {
		line, twice := c.sectionIDs[id]
		if twice {
			o.fault(key, "section %q is already taken in line %d", id, line)
		} else {
			c.sectionIDs[id] = o.node.Line
		}
		return twice
	}), ring
}

func (o *object) price(key string, required bool) string {
	s := o.text(key, required)
	if s != "" && !priceCode.MatchString(s) {
		o.fault(key, "is %q; letters, digits, - and _ are allowed, at most 32", s)
		return ""
	}
	return s
}

func (c *venueContext) standing(o *object, s *section, ring bool) {
	s.standing = int(o.integer("standing", true, 1, mostSeats, 0))
	s.at, s.size = o.point("at", true, -farthest), o.point("size", true, 0.5)
	if ring {
		o.fault("ids", "a standing area has one id")
	}
}

// seated reads the rows: a list of bands, or one band written into the section.
func (c *venueContext) seated(o *object, s *section) {
	rows := o.get("rows", true)
	if rows == nil {
		return
	}
	s.rowPitch = o.number("rowPitch", 0.5, 20, s.rowPitch)
	if rows.Kind == yaml.SequenceNode {
		for i, n := range rows.Content {
			b := c.object(n, fmt.Sprintf("%s[%d]", o.at("rows"), i))
			s.bands = append(s.bands, c.band(b, s.price, true))
			b.done()
		}
	} else {
		s.bands = append(s.bands, c.band(o, s.price, false))
	}
	seen := map[string]bool{}
	for _, b := range s.bands {
		for _, label := range b.rows {
			if seen[label] {
				o.fault("rows", "row %s stands here twice", label)
				s.bands = nil
			}
			seen[label] = true
		}
	}
	if len(seen) > mostRows {
		o.fault("rows", "%d rows, at most %d are allowed in a section", len(seen), mostRows)
		s.bands = nil
	}
}

func (c *venueContext) band(o *object, price string, own bool) band {
	b := band{price: price, rows: o.labels("rows", mostRows)}
	if own {
		if p := o.price("price", false); p != "" {
			b.price = p
		}
		b.accessible = o.seatSet("accessible")
		b.xy = c.points(o)
	}
	if b.price == "" && o.valid && !o.has("price") {
		o.fault("price", "is missing, here and in the section")
	}
	if n := o.keys["seats"]; n != nil && n.Value == "fit" {
		o.get("seats", true)
		b.fit = true
	} else {
		b.seats = o.labels("seats", mostInRow)
	}
	b.aisleAfter = o.seatSet("aisleAfter")
	b.shift = o.number("shift", -farthest, farthest, 0)
	c.bandFits(o, b)
	return b
}

// bandFits looks at what a band's keys say together.
func (c *venueContext) bandFits(o *object, b band) {
	if b.fit {
		if len(b.aisleAfter) > 0 || b.shift != 0 || len(b.xy) > 0 {
			o.fault("seats", "fit leaves no choice for aisleAfter, shift or xy")
		}
		return
	}
	for _, label := range slices.Sorted(maps.Keys(b.aisleAfter)) {
		switch i := slices.Index(b.seats, label); {
		case len(b.seats) == 0:
		case i < 0:
			o.fault("aisleAfter", "no seat of the row is %s", label)
		case i == len(b.seats)-1:
			o.fault("aisleAfter", "seat %s is the last of the row: an aisle needs seats on both sides", label)
		}
	}
	for _, label := range slices.Sorted(maps.Keys(b.accessible)) {
		if len(b.seats) > 0 && !slices.Contains(b.seats, label) {
			o.fault("accessible", "no seat of the row is %s", label)
		}
	}
	if len(b.xy) > 0 && (len(b.rows) != 1 || len(b.xy) != len(b.seats)) {
		o.fault("xy", "needs one row and as many points as seats: %d rows, %d points, %d seats", len(b.rows), len(b.xy), len(b.seats))
	}
}

func (o *object) labels(key string, most int) []string {
	s := o.text(key, true)
	if s == "" {
		return nil
	}
	out, err := labels(s, most)
	if err != nil {
		o.fault(key, "%v", err)
	}
	return out
}

// seatSet reads seat labels: a list of them, or a range.
func (o *object) seatSet(key string) map[string]bool {
	out := map[string]bool{}
	for _, n := range o.texts(key) {
		some, err := labels(n.Value, mostInRow)
		if err != nil {
			o.r.fault(n, o.at(key), "%v", err)
		}
		for _, l := range some {
			out[l] = true
		}
	}
	return out
}

func (c *venueContext) points(o *object) []point {
	var out []point
	for i, n := range o.items("xy", false) {
		out = append(out, c.point(n, fmt.Sprintf("%s[%d]", o.at("xy"), i), -farthest))
	}
	return out
}

// surfaces says where the rows lie: one surface for each id, or nil after a fault.
func (c *venueContext) surfaces(o *object, s *section, n int) []surface {
	if s.standing > 0 || o.has("standing") {
		return nil
	}
	node := o.get("around", false)
	if node == nil {
		p := plane{origin: o.point("at", false, -farthest), radius: o.number("curve", 2, farthest, 0),
			turned: o.number("turn", -360, 360, 0) * math.Pi / 180}
		if n > 1 {
			o.fault("ids", "several sections at once lie around a bowl: around is missing")
			return nil
		}
		for _, b := range s.bands {
			if b.fit {
				o.fault("rows", "seats: fit needs a section around the bowl")
				return nil
			}
		}
		return []surface{p}
	}
	a := c.object(node, o.at("around"))
	from, to := a.number("from", 0, 1, 0), a.number("to", 0, 1, 1)
	offset := a.number("offset", 0, farthest, 1)
	s.gap = a.number("gap", 0, 50, 1.5)
	a.done()
	switch {
	case c.bowl == nil:
		a.r.fault(node, a.path, "the venue has no bowl")
	case from >= to:
		a.fault("to", "is %v, not after from, which is %v", to, from)
	case n > 0:
		return c.sectors(a, s, n, from, to, offset)
	}
	return nil
}

func (c *venueContext) sectors(o *object, s *section, n int, from, to, offset float64) []surface {
	rows := 0
	for _, b := range s.bands {
		rows += len(b.rows)
	}
	var out []surface
	for _, sec := range c.bowl.sectors(n, from, to, offset, float64(max(rows-1, 0))*s.rowPitch) {
		if length, _ := sec.span(0); length-s.gap < 1 {
			o.fault("gap", "leaves no room for a seat: a section's first row is %.1f long", length)
			return nil
		} else if length > mostInRow {
			o.fault("from", "makes rows of %.0f seats, at most %d are allowed", length, mostInRow)
			return nil
		}
		out = append(out, sec)
	}
	return out
}
