package basehttp

import (
	"mime"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Form reads the body of a page's form. get returns a field's first value, ""
// for a field that is not there; its strings are copies and may outlive the
// handler. The error is ErrUnsupportedMedia for any body that is not
// application/x-www-form-urlencoded, or that is compressed.
//
// It stands in for Fiber's FormValue, which also looks in the query string,
// where a secret would be written into logs, and in multipart bodies.
func Form(c *fiber.Ctx) (get func(key string) string, err error) {
	if err := plainEncoding(c); err != nil {
		return nil, err
	}
	if mt, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType)); err != nil || mt != fiber.MIMEApplicationForm {
		return nil, ErrUnsupportedMedia.Detailf("Send Content-Type: application/x-www-form-urlencoded.")
	}
	args := c.Request().PostArgs()
	return func(key string) string { return string(args.Peek(key)) }, nil
}

// hasBody reports whether the headers announce a body; −2 is fasthttp's word for a
// request without a length.
func hasBody(h *fasthttp.RequestHeader) bool { n := h.ContentLength(); return n != 0 && n != -2 }

// plainEncoding refuses a body that would have to be unpacked: fasthttp unpacks
// without a limit, and 56 kB of gzip become more than a gigabyte.
func plainEncoding(c *fiber.Ctx) error {
	h := &c.Request().Header
	if len(h.Peek(fiber.HeaderContentEncoding)) == 0 && !hasBody(h) {
		return nil // nothing to unpack, as nearly always; an empty line may stand before one that says more
	}
	for _, v := range h.PeekAll(fiber.HeaderContentEncoding) {
		if enc := strings.ToLower(strings.TrimSpace(string(v))); enc != "" && enc != "identity" {
			return ErrUnsupportedMedia.Detailf("Content-Encoding %q is not taken; send the body as it is.", clip(enc))
		}
	}
	return nil
}
