package queuehttp

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// The whole page, as a phone loads it, stays under 30 kB.
func TestPageIsLight(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	v := h.visitor()
	v.page()
	v.form("join")
	for _, lang := range []string{"en", "pt-BR", "es"} {
		resp, body := v.do(http.MethodGet, h.base+"/rooms/hall?lang="+lang, nil, "Accept-Encoding", "gzip")
		if resp.Header.Get("Content-Encoding") != "gzip" {
			t.Fatal("the page is not compressed")
		}
		total := len(body)
		_, plain := v.do(http.MethodGet, h.base+"/rooms/hall?lang="+lang, nil)
		for _, m := range regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`).FindAllStringSubmatch(plain, -1) {
			_, file := v.do(http.MethodGet, h.base+m[1], nil, "Accept-Encoding", "gzip")
			total += len(file)
		}
		t.Logf("%s: %d bytes", lang, total)
		if total > 30_000 {
			t.Errorf("%s: the page weighs %d bytes compressed", lang, total)
		}
	}
}

// What strict policies and screen readers trip over, in every page's source.
func TestMarkup(t *testing.T) {
	t.Parallel()
	h := newHouse(t, 0, 5)
	v := h.visitor()
	v.page()
	v.form("join")
	_, waiting := v.page()
	_, index := v.do(http.MethodGet, h.base+"/", nil)
	for name, body := range map[string]string{"waiting": waiting, "index": index} {
		if err := balanced(body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, bad := range []string{"<style", " style=", " onclick=", "javascript:", "<no value>", "ZgotmplZ", "%!"} {
			if strings.Contains(body, bad) {
				t.Errorf("%s: has %q", name, bad)
			}
		}
		if n := strings.Count(body, "<h1"); n != 1 {
			t.Errorf("%s: %d h1", name, n)
		}
		if n := len(regexp.MustCompile(`<script[^>]*>`).FindAllString(body, -1)) - strings.Count(body, `<script defer src="`); n != 0 {
			t.Errorf("%s: %d inline scripts", name, n)
		}
		seen := map[string]bool{}
		for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(body, -1) {
			if seen[m[1]] {
				t.Errorf("%s: id %q twice", name, m[1])
			}
			seen[m[1]] = true
		}
	}
	if n := strings.Count(waiting, "aria-live"); n != 1 {
		t.Errorf("%d live regions, want one", n)
	}
}

// balanced checks that every element that must be closed is, in order.
func balanced(body string) error {
	void := map[string]bool{"meta": true, "link": true, "input": true, "br": true, "img": true, "path": true}
	var open []string
	for _, m := range regexp.MustCompile(`<(/?)([a-z][a-z0-9]*)(?:"[^"]*"|[^">])*?(/?)>`).FindAllStringSubmatch(body, -1) {
		tag := m[2]
		switch {
		case void[tag] || m[3] == "/":
		case m[1] == "":
			open = append(open, tag)
		case len(open) == 0 || open[len(open)-1] != tag:
			return fmt.Errorf("</%s> closes %v", tag, open)
		default:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return errors.New("never closed: " + strings.Join(open, " "))
	}
	return nil
}
