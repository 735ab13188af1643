package returnto

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

var list = []Entry{
	{URL: "https://shop.example/tickets"},
	{URL: "https://shop.example/tickets/vip", Handover: Cookie},
	{URL: "https://whole.example"},
	{URL: "https://port.example:8443/a/"},
	{URL: "http://127.0.0.1:3000"},
}

func TestListedAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://shop.example/tickets":                    list[0].URL,
		"https://shop.example/tickets/":                   list[0].URL,
		"https://shop.example/tickets/7?a=1&b=//evil.com": list[0].URL,
		"https://shop.example/tickets?next=https://x":     list[0].URL,
		"https://shop.example/tickets#/seats/4":           list[0].URL,
		"https://shop.example/tickets/a%20b":              list[0].URL,
		"https://shop.example/tickets/vip/x":              list[1].URL,
		"https://whole.example":                           list[2].URL,
		"https://whole.example/any/where":                 list[2].URL,
		"https://whole.example?q":                         list[2].URL,
		"https://port.example:8443/a/b":                   list[3].URL,
		"http://127.0.0.1:3000/back":                      list[4].URL,
	} {
		if e, ok := Find(list, address); !ok || e.URL != want {
			t.Errorf("%s: %+v, %t", address, e, ok)
		}
	}
}

// What open redirects are made of.
func TestEvilAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"", "/", "/tickets", "//shop.example/tickets", "///shop.example/tickets", "tickets",
		"https:shop.example/tickets", "https:/shop.example/tickets", "https:///shop.example/tickets",
		"http://shop.example/tickets", "HTTPS://shop.example/tickets", "https://SHOP.example/tickets",
		"ftp://shop.example/tickets", "javascript:alert(1)", "javascript://shop.example/%0aalert(1)", "data:text/html,x",
		"https://evil.example/https://shop.example/tickets", "https://evil.example?https://shop.example/tickets",
		"https://evil.example#https://shop.example/tickets",
		"https://shop.example.evil.example/tickets", "https://shop.exampleevil/tickets", "https://shop.example-evil/tickets",
		"https://evilshop.example/tickets", "https://sub.shop.example/tickets",
		"https://shop.example@evil.example/tickets", "https://shop.example:tickets@evil.example/", "https://user@shop.example/tickets",
		"https://user:pw@shop.example/tickets", "https://shop.example%40evil.example/tickets",
		"https://shop.example:443/tickets", "https://shop.example:8443/tickets", "https://shop.example:/tickets", "https://shop.example./tickets",
		"https://shop.example\\@evil.example/tickets", "https://shop.example\\tickets", "https:\\\\shop.example\\tickets",
		"https://shop.example/tickets\\..\\admin", "https://shop.example\t/tickets", "\thttps://shop.example/tickets", " https://shop.example/tickets",
		"https://shop.example/tickets\n", "https://shop.example/tickets\r\nSet-Cookie: a=b", "ht\ntps://shop.example/tickets",
		"https://shop.example/tickets\x00", "https://shop.example\u3002evil.example/tickets", "https://shop.example\uff0ftickets",
		"https://shop.example/", "https://shop.example", "https://shop.example/ticketsevil", "https://shop.example/Tickets",
		"https://shop.example/tickets/../admin", "https://shop.example/tickets/..", "https://shop.example/tickets/./../x",
		"https://shop.example/tickets/%2e%2e/admin", "https://shop.example/tickets/.%2E/admin", "https://shop.example/tickets/..;/admin",
		"https://shop.example/tickets%2f..%2fadmin", "https://shop.example/tickets/%5c..", "https://shop.example/tickets/%252e%252e/x",
		"https://shop.example/tickets/%00", "https://shop.example/tickets/%zz", "https://shop.example//tickets", "https://shop.example/x/tickets",
		"https://whole.example//evil.example", "https://port.example:8443/a", "https://port.example/a/b", "http://127.0.0.1:3001/", "http://127.0.0.1:30000/",
		"http://127.1:3000/", "http://localhost:3000/", "https://[::1]/", "https://shop.example/tickets/" + strings.Repeat("a", maxBytes),
	} {
		if e, ok := Find(list, address); ok {
			t.Errorf("%q is let through by %s", address, e.URL)
		}
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	for _, e := range append(slices.Clone(list), Entry{URL: "http://localhost:1/x"}, Entry{URL: "http://[::1]:8080"}, Entry{URL: "https://a.example/", Handover: Post}) {
		if err := e.Check(); err != nil {
			t.Errorf("%s: %v", e.URL, err)
		}
	}
	for _, e := range []Entry{
		{}, {URL: "shop.example"}, {URL: "http://shop.example"}, {URL: "https://u@shop.example"}, {URL: "https://shop.example/?q"}, {URL: "https://shop.example/#f"},
		{URL: "https://Shop.example"}, {URL: "https://shop.example:443"}, {URL: "https://shop.example:"}, {URL: "https://*.shop.example"}, {URL: "https://shop.example/ a"},
		{URL: "https://shop.example/../x"}, {URL: "https://shop.example//x"}, {URL: "https://shop.example", Handover: "get"}, {URL: "HTTPS://shop.example"},
	} {
		if e.Check() == nil {
			t.Errorf("%+v is taken", e)
		}
	}
	if got := Origins(append(slices.Clone(list), Entry{URL: "http://bad.example"})); !slices.Equal(got, []string{
		"https://shop.example", "https://whole.example", "https://port.example:8443", "http://127.0.0.1:3000",
	}) {
		t.Errorf("%q", got)
	}
}

// Whatever is let through, another reader finds a listed origin in it.
func FuzzFind(f *testing.F) {
	f.Add("https://shop.example/tickets")
	f.Add("https://shop.example@evil/tickets")
	f.Fuzz(func(t *testing.T, address string) {
		if _, ok := Find(list, address); !ok {
			return
		}
		u, err := url.Parse(address)
		if err != nil || u.User != nil || !slices.Contains(Origins(list), u.Scheme+"://"+u.Host) {
			t.Errorf("%q", address)
		}
	})
}
