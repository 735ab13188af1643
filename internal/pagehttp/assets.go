package pagehttp

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// Assets serves static files under addresses that carry their content's hash.
type Assets struct {
	prefix string
	byName map[string]*asset
}

type asset struct {
	url  string
	hash string
	mime string
	body []byte
	gzip []byte // nil when compressing gains nothing
}

// mimeTypes is closed, so that an answer does not depend on the machine's own
// table of types.
var mimeTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	".png": "image/png", ".ico": "image/x-icon", ".webmanifest": "application/manifest+json",
}

// NewAssets reads every file of the trees once. A folder "x.js" is the script x.js in
// parts. Two files of one name are an error.
func NewAssets(prefix string, trees ...fs.FS) (*Assets, error) {
	a := &Assets{prefix: prefix, byName: map[string]*asset{}}
	for _, tree := range trees {
		err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path.Ext(name) == ".js":
				if err := a.join(tree, name); err != nil {
					return err
				}
				return fs.SkipDir
			case d.IsDir():
				return nil
			}
			body, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			return a.add(name, body)
		})
		if err != nil {
			return nil, fmt.Errorf("pagehttp: static files: %w", err)
		}
	}
	return a, nil
}

// join makes one script of a folder's files, in the order of their names: a page in
// parts costs a fan one request all the same. They share one function's scope.
func (a *Assets) join(tree fs.FS, folder string) error {
	parts, err := fs.Glob(tree, folder+"/*.js")
	if err != nil {
		return err
	}
	body := []byte("(() => {\n\"use strict\";\n")
	for _, name := range parts {
		part, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		body = append(append(body, part...), '\n')
	}
	return a.add(folder, append(body, "})();\n"...))
}

func (a *Assets) add(name string, body []byte) error {
	if a.byName[name] != nil {
		return fmt.Errorf("%s is there twice", name)
	}
	ext := path.Ext(name)
	typ := mimeTypes[ext]
	if typ == "" {
		return fmt.Errorf("%s: unknown type of file", name)
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:5])
	a.byName[name] = &asset{
		url:  a.prefix + "/" + strings.TrimSuffix(name, ext) + "." + hash + ext,
		hash: hash, mime: typ, body: body, gzip: squeeze(body),
	}
	return nil
}

func squeeze(body []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil
	}
	if _, err := w.Write(body); err != nil || w.Close() != nil || b.Len() >= len(body) {
		return nil
	}
	return b.Bytes()
}

// URL is the address of a file; an unknown name is an error, so that a template
// with a typing mistake does not start.
func (a *Assets) URL(name string) (string, error) {
	f := a.byName[name]
	if f == nil {
		return "", fmt.Errorf("pagehttp: no static file %q", name)
	}
	return f.url, nil
}

// Register serves the files.
func (a *Assets) Register(r fiber.Router) {
	r.Get(a.prefix+"/*", a.serve)
}

func (a *Assets) serve(c *fiber.Ctx) error {
	f, hash := a.find(c.Params("*"))
	if f == nil {
		return fiber.ErrNotFound
	}
	c.Set(fiber.HeaderContentType, f.mime)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set("Cross-Origin-Resource-Policy", "same-origin")
	c.Set(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	if hash == f.hash {
		c.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
	} else {
		c.Set(fiber.HeaderCacheControl, "no-store")
	}
	if f.gzip != nil && acceptsGzip(c) {
		c.Set(fiber.HeaderContentEncoding, "gzip")
		return c.Send(f.gzip)
	}
	return c.Send(f.body)
}

// find takes name.hash.ext apart.
func (a *Assets) find(file string) (f *asset, hash string) {
	ext := path.Ext(file)
	stem := strings.TrimSuffix(file, ext)
	hash = strings.TrimPrefix(path.Ext(stem), ".")
	return a.byName[strings.TrimSuffix(stem, "."+hash)+ext], hash
}

func acceptsGzip(c *fiber.Ctx) bool {
	for part := range strings.SplitSeq(c.Get(fiber.HeaderAcceptEncoding), ",") {
		coding, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			return !strings.HasPrefix(strings.ReplaceAll(weight, " ", ""), "q=0") || strings.ContainsAny(weight, "123456789")
		}
	}
	return false
}
