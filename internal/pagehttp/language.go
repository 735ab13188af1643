package pagehttp

import (
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/text/language"
)

// LangCookie remembers the language chosen with ?lang=.
const LangCookie = "usher_lang"

// Lang is a language the pages are written in.
type Lang struct {
	Code string // BCP 47, as in the html lang attribute: en, pt-BR, es
	Name string // in the language itself
	tag  language.Tag
}

// Langs are the languages there are; the first is the one for everybody else.
var Langs = []Lang{
	{Code: "en", Name: "English", tag: language.English},
	{Code: "pt-BR", Name: "Português", tag: language.BrazilianPortuguese},
	{Code: "es", Name: "Español", tag: language.Spanish},
}

var langMatcher = language.NewMatcher([]language.Tag{language.English, language.BrazilianPortuguese, language.Spanish})

// Negotiate picks the request's language: ?lang=, then the cookie, then
// Accept-Language, then English. Nonsense in any of them is passed over.
func Negotiate(c *fiber.Ctx) Lang {
	if l, ok := langByCode(c.Query("lang")); ok {
		return l
	}
	if l, ok := langByCode(c.Cookies(LangCookie)); ok {
		return l
	}
	wanted, _, err := language.ParseAcceptLanguage(clip(c.Get(fiber.HeaderAcceptLanguage), 256))
	if err != nil || len(wanted) == 0 {
		return Langs[0]
	}
	_, index, confidence := langMatcher.Match(wanted...)
	if confidence == language.No {
		return Langs[0]
	}
	return Langs[index]
}

func langByCode(code string) (Lang, bool) {
	for _, l := range Langs {
		if strings.EqualFold(l.Code, code) {
			return l, true
		}
	}
	return Lang{}, false
}

// rememberLang stores a language that was asked for by ?lang=.
func rememberLang(c *fiber.Ctx, l Lang, secure bool) {
	if _, asked := langByCode(c.Query("lang")); !asked {
		return
	}
	c.Cookie(&fiber.Cookie{
		Name: LangCookie, Value: l.Code, Path: "/", Expires: time.Now().AddDate(1, 0, 0),
		Secure: secure, HTTPOnly: true, SameSite: fiber.CookieSameSiteLaxMode,
	})
}

// langLink is one entry of the language switch.
type langLink struct {
	Lang
	Href    string
	Current bool
}

// langLinks points at the page that is being shown, with its query kept.
func langLinks(path, query string, now Lang) []langLink {
	q, err := url.ParseQuery(query)
	if err != nil {
		q = url.Values{}
	}
	links := make([]langLink, 0, len(Langs))
	for _, l := range Langs {
		q.Set("lang", l.Code)
		links = append(links, langLink{Lang: l, Href: path + "?" + q.Encode(), Current: l.Code == now.Code})
	}
	return links
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
