package catalog

import "math"

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
