package queuehttp

import (
	"html/template"
	"slices"
	"strings"
)

// pageFuncs are for templates/room.html; room.js does the same on a change.
var pageFuncs = template.FuncMap{
	// hide writes the hidden attribute unless the state is one of those named.
	"hide": func(state, of string) template.HTMLAttr {
		if slices.Contains(strings.Fields(of), state) {
			return ""
		}
		return " hidden"
	},
	// skin is the ticket's: lit for the called, plain paper when it is over.
	"skin": func(state string) string {
		switch state {
		case stateCalled, stateStandBy, stateAdmitted:
			return "lit"
		case stateExpired, stateRevoked, stateLeft, stateMoved, stateKnown, stateClosed:
			return "plain"
		}
		return "stage"
	},
	"stubFor": func() string {
		return "waiting joining join scheduled called standby admitted trouble gathering drawing placing"
	},
	"lineFor":   func() string { return "waiting join left scheduled gathering drawing" },
	"rulesFor":  func() string { return "waiting join joining scheduled gathering drawing placing" },
	"leaveFor":  func() string { return "waiting called standby gathering placing" },
	"deviceFor": func() string { return "waiting called standby gathering placing" },
	"codeFor":   func() string { return "waiting join scheduled gathering placing left expired moved" },
	// worded keeps a state this page has no word for from failing the whole list.
	"worded": func(state string) string {
		if slices.Contains([]string{"scheduled", "gathering", "drawing", "open", "paused"}, state) {
			return state
		}
		return "closed"
	},
	"banner": func(key, now string) any {
		kind := "warn"
		switch key {
		case "paused", "cookies", "return", "recovering":
			kind = "info"
		case "sold":
			kind = "bad"
		}
		return struct {
			Key, Kind string
			On        bool
		}{key, kind, key == now}
	},
}
