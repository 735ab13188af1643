package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"usher/booking"
	"usher/internal/basehttp"
)

var (
	probDates       = basehttp.NewProblem(422, "schedule-invalid", "That schedule is not possible")
	probPublicValue = basehttp.NewProblem(422, "public-value-refused", "The public value cannot be set to that")
)

// scheduleDoc is what an operator sees of a room's schedule and draw; the seed
// never.
type scheduleDoc struct {
	GathersAt   *string `json:"gathersAt"`
	Timezone    string  `json:"timezone"`
	PublicValue string  `json:"publicValue,omitempty"`
	DrawnAt     *string `json:"drawnAt,omitempty"`
	DrawEntries int     `json:"drawEntries,omitempty"`
}

func describeSchedule(r booking.Room) scheduleDoc {
	return scheduleDoc{
		GathersAt: stampOrNull(r.GathersAt), Timezone: r.Timezone, PublicValue: r.Draw.PublicValue,
		DrawnAt: stampOrNull(r.Draw.At), DrawEntries: r.Draw.Entries,
	}
}

// tuneBody is the body of PATCH; what is absent stays.
type tuneBody struct {
	RatePerMinute *int    `json:"ratePerMinute"`
	Cap           *int    `json:"cap"`
	PriorityShare *int    `json:"priorityShare"`
	Valve         *string `json:"valve"`     // fixed, adaptive
	GathersAt     *string `json:"gathersAt"` // RFC 3339, or a time on the clock of the room's timezone; "" takes it away
	OpensAt       *string `json:"opensAt"`
	PublicValue   *string `json:"publicValue"`
}

// adminTune changes numbers, the schedule and the public value of a draw.
func (a *App) adminTune(c *fiber.Ctx) error {
	var body tuneBody
	if err := basehttp.DecodeJSON(c, &body, false); err != nil {
		return err
	}
	if body == (tuneBody{}) {
		return probNoChange.Detailf("Send one or more of ratePerMinute, cap, priorityShare, valve, gathersAt, opensAt and publicValue.")
	}
	change := booking.RoomChange{
		RatePerMinute: body.RatePerMinute, Cap: body.Cap, PriorityShare: body.PriorityShare, Valve: body.Valve, PublicValue: body.PublicValue,
	}
	if body.GathersAt != nil || body.OpensAt != nil {
		if err := a.readSchedule(strings.Clone(c.Params("room")), body, &change); err != nil {
			return err
		}
	}
	return a.adminChange(c, change)
}

func (a *App) readSchedule(room string, body tuneBody, change *booking.RoomChange) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	r, err := a.rooms.Get(ctx, room)
	if err != nil {
		return roomProblem(err)
	}
	loc, err := time.LoadLocation(r.Timezone)
	if err != nil {
		return probDates.Detailf("This machine does not know the room's time zone %s; send an instant with its offset.", r.Timezone).Because(err)
	}
	for _, f := range []struct {
		name string
		text *string
		to   **time.Time
	}{{"gathersAt", body.GathersAt, &change.GathersAt}, {"opensAt", body.OpensAt, &change.OpensAt}} {
		if f.text == nil {
			continue
		}
		*f.to = &time.Time{}
		if *f.text == "" {
			continue
		}
		t, err := booking.ParseTime(*f.text, loc)
		if err != nil {
			return probDates.Detailf("%s: %v.", f.name, err).With("field", f.name)
		}
		**f.to = t
	}
	return nil
}

// scheduleProblem is the problem of what a schedule or a draw refuses; nil for
// anything else.
func scheduleProblem(err error) error {
	var dates *booking.RoomDatesError
	var value *booking.PublicValueError
	switch {
	case errors.As(err, &dates):
		return probDates.Detailf("It would gather at %s, which is not before it opens at %s.",
			stamp(dates.GathersAt), stamp(dates.OpensAt))
	case errors.As(err, &value):
		return probPublicValue.Detailf("%s.", strings.ToUpper(value.Why[:1])+value.Why[1:])
	}
	return nil
}
