package queuehttp

import (
	"fmt"

	"github.com/gofiber/fiber/v2"
)

const cacheSecond = "public, max-age=1"

func (s *Server) getRooms(c *fiber.Ctx) error {
	doc := struct {
		Rooms []roomDoc `json:"rooms"`
	}{Rooms: []roomDoc{}}
	for _, v := range s.line.Rooms() {
		doc.Rooms = append(doc.Rooms, describeRoom(v))
	}
	c.Set(fiber.HeaderCacheControl, cacheSecond)
	return c.JSON(doc)
}

func (s *Server) getRoom(c *fiber.Ctx) error {
	doc, err := s.roomView(room(c))
	if err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, cacheSecond)
	return c.JSON(doc)
}

// roomView is the public state of a room; the problem unknown-room.
func (s *Server) roomView(room string) (roomDoc, error) {
	v, err := s.line.Room(room)
	if err != nil {
		return roomDoc{}, problem(err)
	}
	return describeRoom(v), nil
}

// getKeys publishes the keys passes are verified with. A minute's cache is short
// against the time a new key is published before it signs.
func (s *Server) getKeys(c *fiber.Ctx) error {
	set, err := s.opts.Keys().JWKS(s.opts.Now())
	if err != nil {
		return fmt.Errorf("queuehttp: %w", err)
	}
	c.Set(fiber.HeaderCacheControl, "public, max-age=60")
	c.Set(fiber.HeaderContentType, "application/jwk-set+json")
	return c.Send(set)
}
