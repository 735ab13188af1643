// Package returnto decides to which addresses a waiting room sends its fans back. It is
// pure, and stricter than it would have to be: an address that two readers could take
// apart differently is refused, for the browser is the second reader.
//
// Decisions. An address is held against the operator's list as text: it must begin with
// a listed origin, letter by letter, and go on with a path, a query, a fragment or
// nothing. So nothing can stand where the host ends for one reader and goes on for
// another (userinfo, ports, backslashes, tabs, other scripts). Then its path must be the
// listed one or below it; a path that a server could shorten (dots, coded slashes) is
// refused. Query and fragment are the integrator's own.
package returnto

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// How a pass is handed over at the address.
const (
	Post   = "post"   // by a form: fields pass, binding and room
	Cookie = "cookie" // not at all: the page there asks for it (usher.js), with the browser's cookies
)

// Entry is one address of a room's list: itself, and all below its path.
type Entry struct {
	URL      string // https, or http on this machine; no query, no fragment
	Handover string // Post ("" too) or Cookie
}

// maxBytes bounds an address; what is longer is refused.
const maxBytes = 2000

var errForm = errors.New("must be an https address such as https://www.example.com/tickets (http only on this machine), without user, query or fragment")

// Check tells what is wrong with an entry of a list.
func (e Entry) Check() error {
	if e.Handover != "" && e.Handover != Post && e.Handover != Cookie {
		return fmt.Errorf("handover must be %s or %s, not %q", Post, Cookie, e.Handover)
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" || u.User != nil || strings.ContainsAny(e.URL, "?#*") || !plain(e.URL) || !goodPath(u.EscapedPath()) {
		return errForm
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return errForm
	}
	if u.Host != strings.ToLower(u.Host) || u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80" || strings.HasSuffix(u.Host, ":") {
		return errors.New("must name its host in small letters and no port that goes without saying, as browsers write an origin")
	}
	if !strings.HasPrefix(e.URL, u.Scheme+"://"+u.Host) {
		return errForm
	}
	return nil
}

// Origin is the entry's origin, as a browser sends it; "" for a bad entry.
func (e Entry) Origin() string {
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// path is the entry's path; the whole origin's is "/".
func (e Entry) path() string {
	if p := strings.TrimPrefix(e.URL, e.Origin()); p != "" {
		return p
	}
	return "/"
}

// Find is the entry an address is allowed by, the closest of several.
func Find(list []Entry, address string) (Entry, bool) {
	if address == "" || len(address) > maxBytes || !plain(address) {
		return Entry{}, false
	}
	best, found := Entry{}, false
	for _, e := range list {
		origin := e.Origin()
		rest, ok := strings.CutPrefix(address, origin)
		if origin == "" || !ok || e.Check() != nil {
			continue
		}
		if rest != "" && rest[0] != '/' && rest[0] != '?' && rest[0] != '#' {
			continue // the host goes on
		}
		path := rest
		if i := strings.IndexAny(rest, "?#"); i >= 0 {
			path = rest[:i]
		}
		if path == "" {
			path = "/"
		}
		if below(path, e.path()) && (!found || len(e.URL) > len(best.URL)) {
			best, found = e, true
		}
	}
	if !found {
		return Entry{}, false
	}
	// Once more, by the other reader at hand.
	u, err := url.Parse(address)
	return best, err == nil && u.User == nil && u.Opaque == "" && u.Scheme+"://"+u.Host == best.Origin()
}

// Origins are the origins of a list, each once.
func Origins(list []Entry) []string {
	var out []string
	seen := map[string]bool{}
	for _, e := range list {
		if o := e.Origin(); o != "" && !seen[o] && e.Check() == nil {
			seen[o] = true
			out = append(out, o)
		}
	}
	return out
}

func below(path, top string) bool {
	if !goodPath(path) {
		return false
	}
	return path == top || strings.HasPrefix(path, strings.TrimSuffix(top, "/")+"/")
}

// goodPath refuses what a server might shorten or decode to another path.
func goodPath(path string) bool {
	low := strings.ToLower(path)
	for _, coded := range []string{"%2e", "%2f", "%5c", "%25", "%00", "%0a", "%0d", "%09"} {
		if strings.Contains(low, coded) {
			return false
		}
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || strings.HasPrefix(segment, "..") {
			return false
		}
	}
	return !strings.HasPrefix(path, "//")
}

// plain tells that an address is of visible ASCII without what browsers and servers
// drop, turn around or quote.
func plain(address string) bool {
	for i := range len(address) {
		if b := address[i]; b <= 0x20 || b >= 0x7f || strings.IndexByte("\\\"<>^`{|}", b) >= 0 {
			return false
		}
	}
	return true
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
