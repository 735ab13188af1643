// Package basehttp is what every HTTP listener of Usher shares: problem+json
// errors (RFC 9457), the server's limits and timeouts, one log line a request,
// strict JSON bodies, and the pages' language and security headers.
//
// Every listener refuses a compressed or multipart body before any handler:
// fasthttp unpacks without a limit. A panic is one request's 500. The cause of an
// answer of 500 and above is in its line of the log and nowhere else.
//
// It knows no domain. The *http packages hold a table from their domain's errors
// to a Problem and return it; the one error handler here writes it.
package basehttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
)

// TypeBase precedes every problem's slug to make its `type`. The types are
// stable identifiers, not addresses that must resolve.
const TypeBase = "https://usher.dev/problems/"

// Problem is an RFC 9457 problem document that is also an error. Copy it with
// With… methods; the package-level ones are templates.
type Problem struct {
	Slug       string         // last part of `type`; stable, part of the contract
	Status     int            // HTTP status
	Title      string         // short, same for every occurrence
	Detail     string         // this occurrence, in words a person can act on
	RetryAfter time.Duration  // when > 0, sent as Retry-After (whole seconds, rounded up)
	Fields     map[string]any // extension members, e.g. {"seats": ["F5"]}
	cause      error          // in the log's line for a status of 500 and above, never sent
}

// NewProblem makes a template.
func NewProblem(status int, slug, title string) *Problem {
	return &Problem{Slug: slug, Status: status, Title: title}
}

func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Title + ": " + p.Detail
	}
	return p.Title
}

func (p *Problem) Unwrap() error { return p.cause }

// Is makes a copy made by With… match its template in errors.Is.
func (p *Problem) Is(target error) bool {
	var t *Problem
	return errors.As(target, &t) && t.Slug == p.Slug
}

// Detailf returns a copy with the detail of this occurrence.
func (p *Problem) Detailf(format string, args ...any) *Problem {
	c := *p
	c.Detail = fmt.Sprintf(format, args...)
	return &c
}

// With returns a copy with one extension member more.
func (p *Problem) With(key string, value any) *Problem {
	c := *p
	c.Fields = make(map[string]any, len(p.Fields)+1)
	for k, v := range p.Fields {
		c.Fields[k] = v
	}
	c.Fields[key] = value
	return &c
}

// After returns a copy that tells the client when to try again.
func (p *Problem) After(d time.Duration) *Problem {
	c := *p
	c.RetryAfter = d
	return &c
}

// Because returns a copy that remembers its cause for the log.
func (p *Problem) Because(err error) *Problem {
	c := *p
	c.cause = err
	return &c
}

// MarshalJSON writes the members of RFC 9457 and the extensions beside them.
func (p *Problem) MarshalJSON() ([]byte, error) {
	doc := make(map[string]any, len(p.Fields)+4)
	for k, v := range p.Fields {
		doc[k] = v
	}
	doc["type"] = TypeBase + p.Slug
	doc["title"] = p.Title
	doc["status"] = p.Status
	if p.Detail != "" {
		doc["detail"] = p.Detail
	}
	return json.Marshal(doc)
}

// The problems any listener may answer. Domain ones live in the *http packages.
var (
	ErrInternal         = NewProblem(500, "internal", "Something went wrong on our side")
	ErrNotFound         = NewProblem(404, "not-found", "There is nothing at this address")
	ErrMethodNotAllowed = NewProblem(405, "method-not-allowed", "This address does not take that method")
	ErrBadRequest       = NewProblem(400, "bad-request", "The request could not be understood")
	ErrInvalidBody      = NewProblem(400, "invalid-body", "The body is not what this call takes")
	ErrUnknownField     = NewProblem(400, "unknown-field", "The body has a field this call does not take")
	ErrBodyTooLarge     = NewProblem(413, "body-too-large", "The body is too large")
	ErrHeadersTooLarge  = NewProblem(431, "headers-too-large", "The headers are too large")
	ErrUnsupportedMedia = NewProblem(415, "unsupported-media-type", "The body's type or encoding is not supported")
	ErrUnauthorized     = NewProblem(401, "unauthorized", "A valid token is needed")
	ErrForbidden        = NewProblem(403, "forbidden", "This token does not allow that")
	ErrIdempotencyKey   = NewProblem(400, "idempotency-key-missing", "An Idempotency-Key header is needed")
	ErrBadIdempotency   = NewProblem(400, "idempotency-key-invalid", "The Idempotency-Key is not usable")
	ErrUnavailable      = NewProblem(503, "unavailable", "Not available at the moment")
)

// asProblem finds the problem in err, or translates what Fiber itself raises.
// An error nobody expected is ErrInternal: its text belongs in the log.
func asProblem(err error) (p *Problem) {
	if errors.As(err, &p) {
		return p
	}
	var fe *fiber.Error
	if errors.As(err, &fe) {
		switch fe.Code {
		case fiber.StatusNotFound:
			return ErrNotFound
		case fiber.StatusMethodNotAllowed:
			return ErrMethodNotAllowed
		case fiber.StatusRequestEntityTooLarge:
			return ErrBodyTooLarge
		case fiber.StatusRequestHeaderFieldsTooLarge:
			return ErrHeadersTooLarge
		case fiber.StatusBadRequest:
			return ErrBadRequest
		case fiber.StatusRequestTimeout:
			return NewProblem(408, "request-timeout", "The request took too long to arrive")
		case fiber.StatusServiceUnavailable:
			return ErrUnavailable
		}
		if fe.Code < 500 {
			return NewProblem(fe.Code, "bad-request", "The request could not be understood")
		}
	}
	return ErrInternal
}

// ErrorHandler is the one place an error becomes an answer. A Server's access
// log tells the error; log, which may be nil, is for an app without one.
func ErrorHandler(log *slog.Logger) fiber.ErrorHandler {
	return func(c *fiber.Ctx, err error) error {
		p := asProblem(err)
		if log != nil && p.Status >= 500 {
			log.Error("request failed", "method", c.Method(), "path", c.Path(), "err", fullText(err))
		}
		c.Locals(causeKey, err)
		return WriteProblem(c, p)
	}
}

// WriteProblem writes p as application/problem+json, never cached.
func WriteProblem(c *fiber.Ctx, p *Problem) error {
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("basehttp: marshal problem: %w", err)
	}
	c.Locals(problemKey, p.Slug)
	c.Set(fiber.HeaderCacheControl, "no-store")
	if p.RetryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	if p.Status == fiber.StatusUnauthorized && len(c.Response().Header.Peek(fiber.HeaderWWWAuthenticate)) == 0 {
		c.Set(fiber.HeaderWWWAuthenticate, "Bearer") // RFC 9110: a 401 names its scheme
	}
	c.Set(fiber.HeaderContentType, "application/problem+json")
	return c.Status(p.Status).Send(body)
}

// Locals keys under which the access log finds the slug and the error.
const (
	problemKey = "usher.problem"
	causeKey   = "usher.cause"
)
