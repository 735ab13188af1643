package basehttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// DecodeJSON reads the request body into v: JSON only, no unknown fields, no
// second document behind it, and no compressed body. It uses the raw bytes:
// Fiber's Body() would unpack a gzip bomb past every limit.
// With optional set an absent body leaves v as it is.
func DecodeJSON(c *fiber.Ctx, v any, optional bool) error {
	if err := plainEncoding(c); err != nil {
		return err
	}
	raw := c.Request().Body()
	if len(bytes.TrimSpace(raw)) == 0 {
		if optional {
			return nil
		}
		return ErrInvalidBody.Detailf("The body is empty; a JSON object is expected.")
	}
	if mt, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType)); err != nil || mt != fiber.MIMEApplicationJSON {
		return ErrUnsupportedMedia.Detailf("Send Content-Type: application/json.")
	}
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return ErrInvalidBody.Detailf("The body is null; a JSON object is expected.") // Decode would take it for an empty one
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return decodeProblem(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return ErrInvalidBody.Detailf("There is more than one JSON document in the body.")
	}
	return nil
}

func decodeProblem(err error) error {
	var typeErr *json.UnmarshalTypeError
	var syntaxErr *json.SyntaxError
	switch {
	case errors.As(err, &typeErr):
		field := typeErr.Field
		if field == "" {
			field = "the body"
		}
		return ErrInvalidBody.Detailf("%s must not be a JSON %s.", clip(field), typeErr.Value).With("field", clip(typeErr.Field))
	case errors.As(err, &syntaxErr):
		return ErrInvalidBody.Detailf("The body is not valid JSON (at byte %d).", syntaxErr.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ErrInvalidBody.Detailf("The body is not valid JSON: it ends too soon.")
	}
	// encoding/json has no type for this one: `json: unknown field "x"`.
	if rest, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		field := clip(strings.Trim(rest, `"`))
		return ErrUnknownField.Detailf("%q is not a field of this call.", field).With("field", field)
	}
	return ErrInvalidBody.Detailf("The body is not what this call takes.").Because(err)
}

// IdempotencyKey returns the header's value: 1 to 128 visible ASCII characters.
// It is "" when absent and not required; ErrIdempotencyKey when absent and
// required; ErrBadIdempotency when it is there but unusable.
func IdempotencyKey(c *fiber.Ctx, required bool) (string, error) {
	v := c.Get("Idempotency-Key")
	if v == "" {
		if required {
			return "", ErrIdempotencyKey
		}
		return "", nil
	}
	if len(v) > 128 {
		return "", ErrBadIdempotency.Detailf("At most 128 characters, got %d.", len(v))
	}
	for i := range len(v) {
		if v[i] < 0x21 || v[i] > 0x7e {
			return "", ErrBadIdempotency.Detailf("Visible ASCII characters only.")
		}
	}
	return strings.Clone(v), nil // outlives the handler: Fiber reuses the buffer
}

// BearerToken returns the Authorization header's bearer token, "" when there is
// none. The string is a copy and may outlive the handler.
func BearerToken(c *fiber.Ctx) string {
	scheme, token, ok := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.Clone(strings.TrimSpace(token))
}

// clip keeps a stranger's text short in an answer or a log.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return strings.Clone(s)
}
