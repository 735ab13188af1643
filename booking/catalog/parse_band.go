package catalog

import (
	"fmt"
	"maps"
	"slices"
)

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
