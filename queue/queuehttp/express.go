package queuehttp

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"usher/queue"
)

// Express answers the polls that memory can answer, as getPlace would, without Fiber's
// way to a handler: that way took longer than the answer, and at the worst moment nearly
// every request is such a poll. Whatever is unusual (a page of another origin, an escaped
// address, a place that Redis must be asked for, any error) is left to getPlace: it
// returns "" then. See basehttp.Server.Express.
func (s *Server) Express(ctx *fasthttp.RequestCtx) (route string) {
	h := &ctx.Request.Header
	room, told, ok := pollOf(h.RequestURI())
	if !ok || len(h.Peek(fiber.HeaderOrigin)) != 0 {
		return ""
	}
	// The line keeps neither of these texts (see Recall), which end with the request.
	var token queue.Token
	if scheme, bearer, two := strings.Cut(text(h.Peek(fiber.HeaderAuthorization)), " "); two && strings.EqualFold(scheme, "Bearer") {
		token = queue.Token(bearer)
	} else {
		token = queue.Token(text(h.Cookie(placeCookie + room)))
	}
	var v queue.View
	if !s.line.Recall(&v, room, token, queue.ParseShown(told)) {
		return ""
	}
	s.writePlace(&ctx.Response, &v)
	ctx.Response.Header.SetCanonical(headerVary, originValue)
	ctx.Response.Header.SetCanonical(headerCache, noStoreValue)
	return pollRoute
}

var (
	pollHead, pollTail = []byte("/v1/rooms/"), []byte("/place")
	shownQuery         = []byte("shown=")
)

// pollOf takes the address of a poll apart; ok is false for any that could mean more
// than its letters say.
func pollOf(uri []byte) (room, told string, ok bool) {
	rest, ok := bytes.CutPrefix(uri, pollHead)
	if !ok || bytes.ContainsAny(rest, "%+&#;") {
		return "", "", false
	}
	path, query, asked := bytes.Cut(rest, []byte("?"))
	name, ok := bytes.CutSuffix(path, pollTail)
	if !ok || len(name) == 0 || bytes.IndexByte(name, '/') >= 0 {
		return "", "", false
	}
	if asked {
		if query, ok = bytes.CutPrefix(query, shownQuery); !ok {
			return "", "", false
		}
	}
	return text(name), text(query), true
}

// text is the bytes as a string that lives no longer than they do.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) } //nolint:gosec // not kept, as Fiber's own texts are not
