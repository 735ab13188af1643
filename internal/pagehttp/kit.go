package pagehttp

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
)

//go:embed templates static messages.*.yaml
var base embed.FS

// Options say what a page package brings.
type Options struct {
	Files         fs.FS            // templates/, static/, messages.*.yaml as in the package comment
	Prefix        string           // of the static files' addresses; default /assets
	Funcs         template.FuncMap // more functions for the templates
	SecureCookies bool             // the listener is reached by https
}

// Kit renders the pages of one package. It is made at start and does no I/O
// afterwards.
type Kit struct {
	Assets  *Assets
	Catalog *Catalog
	secure  bool
	pages   map[string]map[string]*template.Template // language code, page name
}

// View is one answer.
type View struct {
	Status int    // default 200
	Page   string // name of the file in templates/ without .html
	Data   any    // .Data in the template
	Path   string // what the language switch points at; default the request's path and query
	Policy Policy
	Secret bool // the page carries a secret: it is not compressed, whose length would tell about it
}

// page is what a template sees.
type page struct {
	Data  any
	Lang  Lang
	Langs []langLink
}

// New parses everything; its errors are mistakes of the programmer or translator.
func New(o Options) (*Kit, error) {
	if o.Prefix == "" {
		o.Prefix = "/assets"
	}
	baseStatic, err := fs.Sub(base, "static")
	if err != nil {
		return nil, err
	}
	trees := []fs.FS{baseStatic}
	if own, err := fs.Sub(o.Files, "static"); err == nil {
		if _, err := fs.Stat(own, "."); err == nil {
			trees = append(trees, own)
		}
	}
	assets, err := NewAssets(o.Prefix, trees...)
	if err != nil {
		return nil, err
	}
	catalog, err := LoadCatalog(base, o.Files)
	if err != nil {
		return nil, err
	}
	k := &Kit{Assets: assets, Catalog: catalog, secure: o.SecureCookies, pages: map[string]map[string]*template.Template{}}
	return k, k.parse(o)
}

func (k *Kit) parse(o Options) error {
	names, err := fs.Glob(o.Files, "templates/*.html")
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range Langs {
		k.pages[l.Code] = map[string]*template.Template{}
		for _, name := range names {
			page := strings.TrimSuffix(path.Base(name), ".html")
			if strings.HasPrefix(page, "_") {
				continue
			}
			t := template.New("base.html").Option("missingkey=error").Funcs(k.funcs(l)).Funcs(o.Funcs)
			_, err := t.ParseFS(base, "templates/base.html")
			for _, other := range names {
				if err == nil && (other == name || strings.HasPrefix(path.Base(other), "_")) {
					_, err = t.ParseFS(o.Files, other)
				}
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("pagehttp: template %s: %w", page, err))
				continue
			}
			k.pages[l.Code][page] = t
		}
	}
	return errors.Join(errs...)
}

func (k *Kit) funcs(l Lang) template.FuncMap {
	text := k.Catalog.Text(l)
	return template.FuncMap{
		"t": text.T, "n": text.N, "num": text.Number, "money": text.Money, "date": text.Date, "clock": text.Clock,
		"asset": k.Assets.URL, "lang": func() Lang { return l },
	}
}

// Register serves the static files.
func (k *Kit) Register(r fiber.Router) { k.Assets.Register(r) }

// Text is the writer in the request's language.
func (k *Kit) Text(c *fiber.Ctx) *Text { return k.Catalog.Text(Negotiate(c)) }

var gzips = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	return w
}}

// Render answers with a page, uncacheable and with the security headers. The
// page is complete before the first byte goes out: a template that fails gives
// an error and not half a page.
func (k *Kit) Render(c *fiber.Ctx, v View) error {
	l := Negotiate(c)
	t := k.pages[l.Code][v.Page]
	if t == nil {
		return fmt.Errorf("pagehttp: no page %q", v.Page)
	}
	address, query := v.Path, ""
	if address == "" {
		address, query = c.Path(), string(c.Request().URI().QueryString())
	}
	var b bytes.Buffer
	if err := t.Execute(&b, page{Data: v.Data, Lang: l, Langs: langLinks(address, query, l)}); err != nil {
		return fmt.Errorf("pagehttp: page %s: %w", v.Page, err)
	}
	rememberLang(c, l, k.secure)
	Secure(c, v.Policy)
	c.Set(fiber.HeaderContentLanguage, l.Code)
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderVary, "Accept-Language, Cookie, Accept-Encoding")
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	if v.Status != 0 {
		c.Status(v.Status)
	}
	if v.Secret || !acceptsGzip(c) {
		return c.Send(b.Bytes())
	}
	return sendGzip(c, b.Bytes())
}

func sendGzip(c *fiber.Ctx, body []byte) error {
	w, ok := gzips.Get().(*gzip.Writer)
	if !ok {
		return c.Send(body)
	}
	defer gzips.Put(w)
	var z bytes.Buffer
	w.Reset(&z)
	if _, err := w.Write(body); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	c.Set(fiber.HeaderContentEncoding, "gzip")
	return c.Send(z.Bytes())
}
