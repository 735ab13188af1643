package pagehttp

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"go.yaml.in/yaml/v3"
	"golang.org/x/text/language"
)

// Catalog holds the messages of one page package in every language.
type Catalog struct {
	texts map[string]*Text // by Lang.Code
}

// Text writes in one language.
type Text struct {
	Lang Lang
	loc  *i18n.Localizer
	raw  map[string]*i18n.Message
}

// LoadCatalog reads messages.<code>.yaml of every language from each of the
// file systems. It fails when an id is missing in some language or is defined
// twice: a hole in a translation is found at start.
func LoadCatalog(trees ...fs.FS) (*Catalog, error) {
	bundle := i18n.NewBundle(language.English)
	bundle.RegisterUnmarshalFunc("yaml", yaml.Unmarshal)
	c := &Catalog{texts: map[string]*Text{}}
	var errs []error
	for _, l := range Langs {
		raw, err := loadMessages(bundle, l, trees)
		errs = append(errs, err)
		c.texts[l.Code] = &Text{Lang: l, raw: raw, loc: i18n.NewLocalizer(bundle, l.Code)}
	}
	if err := errors.Join(errs...); err != nil {
		return c, err
	}
	return c, c.sameIDs()
}

func loadMessages(bundle *i18n.Bundle, l Lang, trees []fs.FS) (map[string]*i18n.Message, error) {
	raw := map[string]*i18n.Message{}
	for _, tree := range trees {
		name := "messages." + l.Code + ".yaml"
		data, err := fs.ReadFile(tree, name)
		if err != nil {
			return raw, fmt.Errorf("pagehttp: %w", err)
		}
		file, err := i18n.ParseMessageFileBytes(data, name, map[string]i18n.UnmarshalFunc{"yaml": yaml.Unmarshal})
		if err != nil {
			return raw, fmt.Errorf("pagehttp: %s: %w", name, err)
		}
		for _, m := range file.Messages {
			if raw[m.ID] != nil {
				return raw, fmt.Errorf("pagehttp: %s: message %q is defined twice", name, m.ID)
			}
			// Spanish and Portuguese have a form of their own for whole millions
			// ("1 millón de"); with digits it reads like the ordinary plural.
			if m.One != "" && m.Many == "" {
				m.Many = m.Other
			}
			raw[m.ID] = m
			if err := bundle.AddMessages(l.tag, m); err != nil {
				return raw, fmt.Errorf("pagehttp: %s: message %q: %w", name, m.ID, err)
			}
		}
	}
	return raw, nil
}

func (c *Catalog) sameIDs() error {
	var errs []error
	for _, a := range Langs {
		for _, b := range Langs {
			for id, m := range c.texts[a.Code].raw {
				other := c.texts[b.Code].raw[id]
				switch {
				case other == nil:
					errs = append(errs, fmt.Errorf("pagehttp: message %q is missing in %s", id, b.Code))
				case (other.One == "") != (m.One == ""):
					errs = append(errs, fmt.Errorf("pagehttp: message %q counts in %s and does not in %s", id, a.Code, b.Code))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// Text returns the writer of a language.
func (c *Catalog) Text(l Lang) *Text { return c.texts[l.Code] }

// Has tells whether there is such a message.
func (t *Text) Has(id string) bool { return t.raw[id] != nil }

// T writes message id. Pairs are names and values for its {{.Name}}s. A message
// that does not exist is an error: templates stop, Go callers see the id.
func (t *Text) T(id string, pairs ...any) (string, error) {
	// Most messages are plain text: a page has fifty of them.
	if m := t.raw[id]; m != nil && m.One == "" && !strings.Contains(m.Other, "{{") {
		return m.Other, nil
	}
	data, err := pairMap(pairs)
	if err != nil {
		return id, fmt.Errorf("message %q: %w", id, err)
	}
	s, err := t.loc.Localize(&i18n.LocalizeConfig{MessageID: id, TemplateData: data})
	if err != nil {
		return id, err
	}
	return s, nil
}

// N writes message id in the plural form of n; {{.Count}} in it is n with the
// language's grouping.
func (t *Text) N(id string, n int, pairs ...any) (string, error) {
	data, err := pairMap(pairs)
	if err != nil {
		return id, fmt.Errorf("message %q: %w", id, err)
	}
	data["Count"] = t.Number(n)
	s, err := t.loc.Localize(&i18n.LocalizeConfig{MessageID: id, TemplateData: data, PluralCount: n})
	if err != nil {
		return id, err
	}
	return s, nil
}

// Must writes message id and is the id itself when there is none.
func (t *Text) Must(id string, pairs ...any) string {
	s, _ := t.T(id, pairs...)
	return s
}

func pairMap(pairs []any) (map[string]any, error) {
	data := make(map[string]any, len(pairs)/2+1)
	if len(pairs)%2 != 0 {
		return data, errors.New("a name without a value")
	}
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return data, fmt.Errorf("%v is not a name", pairs[i])
		}
		data[name] = pairs[i+1]
	}
	return data, nil
}

// ForScript returns the messages whose id begins with one of the prefixes, for
// a page's script: a string, or an object by plural form for those that count.
// {{.Name}} stays in them; the script replaces it.
func (t *Text) ForScript(prefixes ...string) map[string]any {
	out := map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(t.raw)) {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(id, p) }) {
			continue
		}
		m := t.raw[id]
		if m.One == "" {
			out[id] = m.Other
			continue
		}
		out[id] = map[string]string{"one": m.One, "other": m.Other}
	}
	return out
}
