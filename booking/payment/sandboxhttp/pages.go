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
	matcher language.Matcher
}

func newPages() (*pages, error) {
	t, err := template.ParseFS(assets, "templates/pay.html")
	if err != nil {
		return nil, fmt.Errorf("sandboxhttp: pages: %w", err)
	}
	var tags []language.Tag
	for _, m := range messages {
		tags = append(tags, m.tag)
	}
	return &pages{pay: t, matcher: language.NewMatcher(tags)}, nil
}

type payView struct {
	Lang, Merchant, Description, Amount string
	T                                   text
	Choices                             []choice
	Open                                bool
	Back, State                         string
}

func (p *pages) show(c *fiber.Ctx, merchant string, r record) error {
	_, i := language.MatchStrings(p.matcher, c.Get(fiber.HeaderAcceptLanguage))
	m := messages[i]
	v := payView{
		Lang: m.tag.String(), Merchant: merchant, Description: r.Description, T: m.text, Choices: m.choices,
		Amount: money(m.tag, r.Amount, r.Currency), Open: r.State == string(payment.StatusOpen),
		Back: r.ReturnURL, State: m.states[r.State],
	}
	var out bytes.Buffer
	if err := p.pay.Execute(&out, v); err != nil {
		return fmt.Errorf("sandboxhttp: page: %w", err)
	}
	c.Set(fiber.HeaderContentType, "text/html; charset=utf-8")
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderContentLanguage, v.Lang)
	c.Set(fiber.HeaderVary, fiber.HeaderAcceptLanguage)
	c.Set("Referrer-Policy", "no-referrer") // the address is the payment's secret
	c.Set(fiber.HeaderXFrameOptions, "DENY")
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self' "+origin(r.ReturnURL))
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
