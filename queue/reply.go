package queue

import (
	"strconv"
	"time"
)

// Scripts answer integers and texts; scores always as text, because a reply of
// type integer would have passed through Lua's double with the wrong format.

// text is the i-th element as text; "" when it is absent or nil.
func text(reply []any, i int) string {
	if i >= len(reply) {
		return ""
	}
	switch v := reply[i].(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// number is the i-th element as an integer; 0 when it is absent, nil or empty.
func number(reply []any, i int) int64 { return parseScore(text(reply, i)) }

// fields is a hash as a script answers it (HGETALL).
type fields map[string]string

// readFields is the i-th element as a hash; empty when it is none.
func readFields(reply []any, i int) fields {
	flat := list(reply, i)
	f := make(fields, len(flat)/2)
	for j := 0; j+1 < len(flat); j += 2 {
		f[text(flat, j)] = text(flat, j+1)
	}
	return f
}

// number is a field as an integer; 0 when it is absent.
func (f fields) number(name string) int64 { return parseScore(f[name]) }

// real is a field as a float; 0 when it is absent.
func (f fields) real(name string) float64 {
	v, err := strconv.ParseFloat(f[name], 64)
	if err != nil {
		return 0
	}
	return v
}

// list is the i-th element as a list; nil when it is none.
func list(reply []any, i int) []any {
	if i >= len(reply) {
		return nil
	}
	l, _ := reply[i].([]any)
	return l
}

// parseScore reads a score; Redis writes whole ones below 2^53 without an exponent.
func parseScore(s string) int64 {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return int64(f)
	}
	return 0
}

// instant turns µs into a time; the zero time for 0.
func instant(us int64) time.Time {
	if us <= 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
