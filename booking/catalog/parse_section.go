package catalog

import (
	"fmt"
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
