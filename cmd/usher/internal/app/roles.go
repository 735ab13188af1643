package app

import (
	"fmt"
	"strings"
)

// part is one thing a process can be. build makes it from the open stores and
// registers its loops and routes; it serves nothing yet.
type part struct {
	name     string
	listener string // the listener it answers on; "" for none
	redis    bool
	postgres bool
	build    func(a *App) error
}

var (
	edgePart    = part{name: "edge", listener: "edge", redis: true, build: (*App).buildEdge}
	bookingPart = part{name: "booking", listener: "booking", postgres: true, build: (*App).buildBooking}
	bridgePart  = part{name: "bridge", redis: true, postgres: true, build: (*App).buildBridge}
	sandboxPart = part{name: "sandbox", listener: "sandbox", build: (*App).buildSandbox}
)

// roles is every role and its parts, in the order they are built; they stop in
// the opposite order.
var roles = []struct {
	name  string
	parts []part
}{
	{"edge", []part{edgePart}},
	{"booking", []part{bookingPart, bridgePart}},
	{"sandbox", []part{sandboxPart}},
	{"dev", []part{edgePart, bookingPart, bridgePart, sandboxPart}},
}

func partsOf(role string) ([]part, error) {
	var names []string
	for _, r := range roles {
		if r.name == role {
			return r.parts, nil
		}
		names = append(names, r.name)
	}
	return nil, fmt.Errorf("app: no role %q; there are %s", role, strings.Join(names, ", "))
}
