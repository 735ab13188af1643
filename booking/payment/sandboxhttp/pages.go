package sandboxhttp

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"mime"
	"path"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/text/currency"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"

	"usher/booking/payment"
	"usher/internal/basehttp"
)

//go:embed templates static
var assets embed.FS

// pages renders the payment page.
type pages struct {
	pay     *template.Template
	none    *template.Template
	matcher language.Matcher
}

func newPages() (*pages, error) {
	t, err := template.ParseFS(assets, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("sandboxhttp: pages: %w", err)
	}
	var tags []language.Tag
	for _, m := range messages {
		tags = append(tags, m.tag)
	}
	return &pages{pay: t.Lookup("pay.html"), none: t.Lookup("none.html"), matcher: language.NewMatcher(tags)}, nil
}

type payView struct {
	Lang, Merchant, Description, Amount string
	T                                   text
	Choices                             []choice
	Open                                bool
	Back, State                         string
}

func (p *pages) show(c *fiber.Ctx, merchant string, r record) error {
	m := p.words(c)
	v := payView{
		Lang: m.tag.String(), Merchant: merchant, Description: r.Description, T: m.text, Choices: m.choices,
		Amount: money(m.tag, r.Amount, r.Currency), Open: r.State == string(payment.StatusOpen),
		Back: r.ReturnURL, State: m.states[r.State],
	}
	return send(c, p.pay, v, "'self' "+origin(r.ReturnURL))
}

// missing is the page of an address that names no payment.
func (p *pages) missing(c *fiber.Ctx, merchant string) error {
	m := p.words(c)
	c.Status(fiber.StatusNotFound)
	return send(c, p.none, payView{Lang: m.tag.String(), Merchant: merchant, T: m.text}, "'none'")
}

// words are the language the browser likes best of those there are.
func (p *pages) words(c *fiber.Ctx) language3 {
	_, i := language.MatchStrings(p.matcher, c.Get(fiber.HeaderAcceptLanguage))
	return messages[i]
}

// send renders a page; formAction is where its form may end.
func send(c *fiber.Ctx, t *template.Template, v payView, formAction string) error {
	var out bytes.Buffer
	if err := t.Execute(&out, v); err != nil {
		return fmt.Errorf("sandboxhttp: page: %w", err)
	}
	c.Set(fiber.HeaderContentType, "text/html; charset=utf-8")
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderContentLanguage, v.Lang)
	c.Set(fiber.HeaderVary, fiber.HeaderAcceptLanguage+", "+fiber.HeaderAccept)
	c.Set("Referrer-Policy", "no-referrer") // the address is the payment's secret
	c.Set(fiber.HeaderXFrameOptions, "DENY")
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action "+formAction)
	return c.Send(out.Bytes())
}

// money writes minor units as people do: BRL 1.234,50.
func money(tag language.Tag, amount int64, code string) string {
	scale := 2
	if unit, err := currency.ParseISO(code); err == nil {
		scale, _ = currency.Standard.Rounding(unit)
	}
	value := float64(amount)
	for range scale {
		value /= 10
	}
	return code + "\u00a0" + message.NewPrinter(tag).Sprint(number.Decimal(value, number.Scale(scale)))
}

func (s *Server) static(c *fiber.Ctx) error {
	name := path.Base(c.Params("file"))
	raw, err := assets.ReadFile("static/" + name)
	if err != nil {
		return basehttp.ErrNotFound
	}
	c.Set(fiber.HeaderContentType, mime.TypeByExtension(path.Ext(name)))
	c.Set(fiber.HeaderCacheControl, "public, max-age=300")
	return c.Send(raw)
}
