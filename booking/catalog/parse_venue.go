package catalog

import (
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

var (
	codePattern = regexp.MustCompile(`^(?:[A-Za-z0-9._-]|\{section\}|\{row\}|\{seat\})+$`)
	sectionID   = regexp.MustCompile(`^[A-Za-z0-9]{1,16}$`)
	priceCode   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)
)

func seatCode(pattern, section, row, seat string) string {
	return strings.NewReplacer("{section}", section, "{row}", row, "{seat}", seat).Replace(pattern)
}

func (r *reader) venue(n *yaml.Node, path string) Venue {
	o := r.object(n, path)
	v := Venue{Line: n.Line, ID: o.id("id"), Name: o.text("name", true), City: o.text("city", false), Timezone: o.text("timezone", true)}
	o.unique(v.ID, r.seen("venue"))
	v.location = o.location(v.Timezone)
	ctx := venueContext{reader: r, codes: o.seatCodes("{section}-{row}-{seat}")}
	var s shape
	if node := o.get("stage", false); node != nil {
		s.Stage = r.stage(node, o.at("stage"))
	}
	if node := o.get("bowl", false); node != nil {
		ctx.bowl = r.bowl(node, o.at("bowl"))
		if ctx.bowl != nil {
			s.Floor = ctx.bowl.edge()
		}
	}
	ctx.sectionIDs = map[string]int{}
	each(o, "sections", true, func(n *yaml.Node, path string) { ctx.sections(n, path) })
	o.done()
	v.Seats = ctx.seats(o, &s)
	if len(r.faults) == 0 {
		s.place(v.Seats)
		v.finish(&s)
	}
	return v
}

// location loads a time zone. "" and "Local" would silently mean this machine's.
func (o *object) location(name string) *time.Location {
	if name == "" {
		return nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		o.fault("timezone", "%q is not a time zone such as Europe/Lisbon", name)
		return nil
	}
	return loc
}

func (o *object) seatCodes(otherwise string) string {
	s := o.text("seatCodes", false)
	switch {
	case s == "":
		return otherwise
	case !codePattern.MatchString(s):
		o.fault("seatCodes", "is %q; {section}, {row}, {seat}, letters, digits and . _ - may stand in it", s)
	case !strings.Contains(s, "{seat}") || !strings.Contains(s, "{row}"):
		o.fault("seatCodes", "is %q, must hold {row} and {seat}", s)
	default:
		return s
	}
	return otherwise
}

func (r *reader) stage(n *yaml.Node, path string) *shapeStage {
	o := r.object(n, path)
	kind := o.choice("kind", "stage", "screen", "pitch")
	label := o.text("label", false)
	at, size := o.point("at", true, -farthest), o.point("size", true, 0.1)
	o.done()
	return &shapeStage{Kind: kind, Label: label, X: at[0] - size[0]/2, Y: at[1] - size[1]/2, Width: size[0], Height: size[1]}
}

func (r *reader) bowl(n *yaml.Node, path string) *bowl {
	o := r.object(n, path)
	size := o.point("size", true, 4)
	corner := o.number("corner", 1, farthest/2, min(size[0], size[1])/4)
	o.done()
	if corner > min(size[0], size[1])/2 {
		o.fault("corner", "is %v, more than half the bowl's smaller side", corner)
		return nil
	}
	return &bowl{halfW: size[0] / 2, halfH: size[1] / 2, corner: corner}
}

// venueContext is what a section's reading needs of its venue.
type venueContext struct {
	*reader
	codes      string
	bowl       *bowl
	sectionIDs map[string]int
	read       []sectionRead
	marked     []marked
}

// sectionRead is a section with where it stands in the file.
type sectionRead struct {
	section
	obj *object
}

// seats lays out every section. Nothing is laid out before its number is known: a slip
// of the pen must not cost the memory of a billion seats.
func (c *venueContext) seats(o *object, s *shape) []Seat {
	total := 0
	for _, sec := range c.read {
		total += sec.count()
	}
	switch {
	case total > mostSeats:
		o.fault("sections", "make %d seats, at most %d are allowed in a venue", total, mostSeats)
		return nil
	case total == 0 && len(c.faults) == 0:
		o.fault("sections", "make 0 seats")
		return nil
	}
	taken := make(map[string]string, total)
	var seats []Seat
	for _, sec := range c.read {
		l := sec.lay()
		c.unique(sec, l.seats, taken)
		seats = append(seats, l.seats...)
		s.Sections = append(s.Sections, l.shape)
		s.Rows = append(s.Rows, l.rows...)
	}
	seats = c.special(seats)
	if len(seats) == 0 && len(c.faults) == 0 {
		o.fault("sections", "make 0 seats")
	}
	s.recount(seats)
	return seats
}

// recount corrects the sections' numbers by the seats that are missing.
func (s *shape) recount(seats []Seat) {
	n := map[string]int{}
	for _, seat := range seats {
		n[seat.Section]++
	}
	for i := range s.Sections {
		s.Sections[i].Seats = n[s.Sections[i].ID]
	}
}

// unique refuses a seat code that exists already, once per section.
func (c *venueContext) unique(sec sectionRead, seats []Seat, taken map[string]string) {
	told := false
	for _, seat := range seats {
		if other, twice := taken[seat.Code]; twice && !told {
			told = true
			where := "section " + other
			if other == sec.id {
				where = "this section"
			}
			c.fault(sec.obj.node, sec.obj.path, "seat %s is already in %s", seat.Code, where)
		}
		if len(seat.Code) > 32 && !told {
			told = true
			c.fault(sec.obj.node, sec.obj.path, "the seat code %s is longer than 32", seat.Code)
		}
		taken[seat.Code] = sec.id
	}
}
