package catalog

import (
	"encoding/json"
	"time"
)

// File is a catalog file that was read and found without fault. Only Parse
// makes one.
type File struct {
	Name   string // as given to Parse, for messages
	Digest string // hex SHA-256 of the file's bytes
	Rooms  []Room
	Venues []Venue
	Events []Event
}

// Room is a waiting room as the file wants it.
type Room struct {
	Line          int
	ID, Title     string
	Mode, Valve   string
	State         string // for a room that does not exist yet; never applied to one that does
	RatePerMinute int
	Cap           int
	PriorityShare *int   // nil: as it is, 30 for a room that does not exist yet
	Timezone      string // IANA name; UTC when the file names none
	GathersAt     *time.Time
	OpensAt       *time.Time
}

// Venue is a place with the seats it has now.
type Venue struct {
	Line                     int
	ID, Name, City, Timezone string
	LayoutID                 string // venue id, "@", 12 hex digits of the content's digest
	Seats                    []Seat
	Shape                    json.RawMessage // see the package comment
	location                 *time.Location
}

// Seat is one row of a layout.
type Seat struct {
	Code, Section, Row, Label string
	RowIndex, Position        int // physical; from 1
	X, Y                      float64
	Accessible, Standing      bool
	PriceClass                string
}

// Event is what is sold, with its showtimes.
type Event struct {
	Line            int
	ID, Venue       string
	Title, Subtitle string
	Kind            string // cinema, stadium
	Currency        string // ISO 4217
	MaxPerHold      int
	MaxPerCustomer  int    // 0: no limit
	LimitScope      string // showtime, event
	Hold            time.Duration
	Prices          []Price
	Showtimes       []Showtime
}

// Price is one price class of an event.
type Price struct {
	Code, Name, Color string
	Amount            int64 // minor units
}

// Showtime is one performance.
type Showtime struct {
	Line     int
	ID, Room string
	Starts   Start
}

// Start is when a showtime begins: an instant, or a day counted from the day of
// the first apply together with a time on the venue's clock.
type Start struct {
	At       time.Time // zero when relative
	InDays   int
	Hour     int
	Minute   int
	Relative bool
}
