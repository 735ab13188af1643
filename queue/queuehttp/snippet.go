package queuehttp

import (
	_ "embed"

	"github.com/gofiber/fiber/v2"
)

//go:embed snippet/usher.js
var snippet []byte

// getSnippet serves the script that integrators put into their pages. Its address is
// part of those pages, so it never changes, and is cached shortly.
func (s *Server) getSnippet(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, "text/javascript; charset=utf-8")
	c.Set(fiber.HeaderCacheControl, "public, max-age=300")
	c.Set("Cross-Origin-Resource-Policy", "cross-origin")
	return c.Send(snippet)
}
