package catalog

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// count is how many seats lay will make, the missing ones included.
func (s section) count() int {
	if s.standing > 0 {
		return s.standing
	}
	n, index := 0, 0
	for _, b := range s.bands {
		for range b.rows {
			if b.fit {
				n += len(s.arrange(b, float64(index)*s.rowPitch).places)
			}
			n += len(b.seats)
			index++
		}
	}
	return n
}

// marks reads the section's lists of seat codes, which mark looks up once the
// seats exist.
func (c *venueContext) marks(o *object) {
	for _, key := range []string{"accessible", "missing"} {
		if o.has(key) {
			c.marked = append(c.marked, marked{o, key, o.texts(key)})
		}
	}
}

// marked is a list of seat codes of which something is said.
type marked struct {
	obj   *object
	key   string
	nodes []*yaml.Node
}

// special makes seats accessible or takes them away, and names codes that are no seat.
func (c *venueContext) special(seats []Seat) []Seat {
	index := make(map[string]int, len(seats))
	for i, s := range seats {
		index[s.Code] = i
	}
	gone := map[int]bool{}
	for _, m := range c.marked {
		seen := map[string]bool{}
		for _, n := range m.nodes {
			i, ok := index[n.Value]
			switch {
			case !ok:
				c.fault(n, m.obj.at(m.key), "there is no seat %s", n.Value)
			case seen[n.Value]:
				c.fault(n, m.obj.at(m.key), "seat %s stands here twice", n.Value)
			case m.key == "missing":
				gone[i] = true
			default:
				seats[i].Accessible = true
			}
			seen[n.Value] = true
		}
	}
	out := seats[:0]
	for i, s := range seats {
		if !gone[i] {
			out = append(out, s)
		}
	}
	return out
}

// pricesByID reads which sections of a ring cost otherwise.
func (c *venueContext) pricesByID(o *object, ids []string) map[string]string {
	n := o.get("prices", false)
	if n == nil {
		return nil
	}
	m := c.object(n, o.at("prices"))
	out := map[string]string{}
	for _, k := range slices.Sorted(maps.Keys(m.keys)) {
		price := m.price(k, true)
		some, err := labels(k, mostSections)
		if err != nil {
			m.fault(k, "%v", err)
		}
		for _, id := range some {
			if !slices.Contains(ids, id) {
				m.fault(k, "section %s is not among the ids", id)
			}
			if out[id] != "" {
				m.fault(k, "section %s has a price already", id)
			}
			out[id] = price
		}
	}
	return out
}
