package catalog

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/currency"
)

const (
	highestPrice  = 1_000_000_000 // minor units
	shortestHold  = time.Second
	longestHold   = 24 * time.Hour
	mostPerHold   = 100
	mostPerPerson = 100_000
)

var color = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

func (r *reader) event(n *yaml.Node, path string, f *File) Event {
	o := r.object(n, path)
	e := Event{
		Line: n.Line, ID: o.id("id"), Venue: o.id("venue"),
		Title: o.text("title", true), Subtitle: o.text("subtitle", false),
		Kind: o.choice("kind", "cinema", "stadium"), Currency: o.currency("currency"),
	}
	o.unique(e.ID, r.seen("event"))
	o.get("kind", true)
	i := slices.IndexFunc(f.Venues, func(v Venue) bool { return v.ID == e.Venue })
	var venue *Venue
	if i >= 0 {
		venue = &f.Venues[i]
	} else if e.Venue != "" {
		o.fault("venue", "there is no venue %q in this file", e.Venue)
	}
	r.limits(o, &e)
	e.Prices = r.prices(o)
	o.priced(e, venue)
	each(o, "showtimes", true, func(n *yaml.Node, path string) {
		e.Showtimes = append(e.Showtimes, r.showtime(n, path, f, venue))
	})
	o.done()
	return e
}

func (o *object) currency(key string) string {
	s := o.text(key, true)
	if s == "" {
		return ""
	}
	if _, err := currency.ParseISO(s); err != nil || s != strings.ToUpper(s) {
		o.fault(key, "%q is not an ISO 4217 currency such as EUR", s)
		return ""
	}
	return s
}

// limits fills in what kind of event has which limits unless the file says otherwise.
func (r *reader) limits(o *object, e *Event) {
	e.MaxPerHold, e.LimitScope, e.Hold = 8, "showtime", 10*time.Minute
	if e.Kind == "stadium" {
		e.MaxPerHold, e.MaxPerCustomer = 6, 6
	}
	n := o.get("limits", false)
	if n == nil {
		return
	}
	l := r.object(n, o.at("limits"))
	e.MaxPerHold = int(l.integer("maxPerHold", false, 1, mostPerHold, int64(e.MaxPerHold)))
	if n := l.keys["maxPerCustomer"]; n != nil && n.Value == "none" {
		l.get("maxPerCustomer", false)
		e.MaxPerCustomer = 0
	} else {
		e.MaxPerCustomer = int(l.integer("maxPerCustomer", false, 1, mostPerPerson, int64(e.MaxPerCustomer)))
	}
	e.LimitScope = l.choice("limitScope", "showtime", "event")
	if s := l.text("hold", false); s != "" {
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			l.fault("hold", "is %q, must be a duration such as 10m", s)
		case d < shortestHold || d > longestHold || d%time.Second != 0:
			l.fault("hold", "is %s, must be whole seconds between %s and %s", s, shortestHold, longestHold)
		default:
			e.Hold = d
		}
	}
	if e.MaxPerCustomer > 0 && e.MaxPerHold > e.MaxPerCustomer {
		l.fault("maxPerHold", "is %d, more than a customer may have at all, which is %d", e.MaxPerHold, e.MaxPerCustomer)
	}
	l.done()
}

func (r *reader) prices(o *object) []Price {
	n := o.get("prices", true)
	if n == nil {
		return nil
	}
	m := r.object(n, o.at("prices"))
	if m.valid && len(m.names) == 0 {
		o.fault("prices", "must not be empty")
	}
	var out []Price
	for _, k := range m.names {
		code := k.Value
		if !priceCode.MatchString(code) {
			r.fault(k, m.at(code), "is %q; letters, digits, - and _ are allowed, at most 32", code)
		}
		if slices.ContainsFunc(out, func(p Price) bool { return p.Code == code }) {
			continue // told already
		}
		p := r.object(m.keys[code], m.at(code))
		price := Price{Code: code, Name: p.text("name", true), Color: p.text("color", false)}
		if a := p.keys["amount"]; a != nil && a.Tag == "!!float" {
			p.get("amount", true)
			p.fault("amount", "is %s, must be a whole number of minor units (1250 is 12.50)", a.Value)
		} else {
			price.Amount = p.integer("amount", true, 0, highestPrice, 0)
		}
		if price.Color != "" && !color.MatchString(price.Color) {
			p.fault("color", "is %q, must look like #5b7cfa", price.Color)
		}
		p.done()
		out = append(out, price)
	}
	return out
}

// priced complains of price classes that the venue's seats have and the event does not.
func (o *object) priced(e Event, v *Venue) {
	if v == nil {
		return
	}
	unpriced := map[string]int{}
	for _, s := range v.Seats {
		if s.PriceClass != "" && !slices.ContainsFunc(e.Prices, func(p Price) bool { return p.Code == s.PriceClass }) {
			unpriced[s.PriceClass]++
		}
	}
	for _, code := range slices.Sorted(maps.Keys(unpriced)) {
		o.fault("prices", "there is no price class %q, which %d seats of venue %s have", code, unpriced[code], v.ID)
	}
}
