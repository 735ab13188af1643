package configs

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// field is one settable key of a Config, found by its tags.
type field struct {
	key   string // "edge.placeSecrets"
	live  bool
	file  bool
	path  bool
	value reflect.Value // addressable, within the Config
}

// fieldsOf lists every key of c, in the order of the struct.
func fieldsOf(c *Config) []field {
	var out []field
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			tag := v.Type().Field(i).Tag
			key := prefix + tag.Get("koanf")
			if f := v.Field(i); f.Kind() == reflect.Struct {
				walk(key+".", f)
			} else {
				out = append(out, field{
					key: key, live: tag.Get("live") == "yes", file: tag.Get("file") == "yes", path: tag.Get("path") == "yes", value: f,
				})
			}
		}
	}
	walk("", reflect.ValueOf(c).Elem())
	return out
}

// envName is the environment's name of a key: edge.publicURL is USHER_EDGE_PUBLIC_URL.
func envName(key string) string {
	var b strings.Builder
	b.WriteString("USHER_")
	runes := []rune(key)
	for i, r := range runes {
		switch {
		case r == '.':
			b.WriteByte('_')
			continue
		case unicode.IsUpper(r) && i > 0 && unicode.IsLower(runes[i-1]):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// set stores raw, as YAML or the environment gave it, in the field. The error
// is the rest of a sentence that begins with the key.
func (f field) set(raw any) error {
	if raw == nil {
		return fmt.Errorf("is empty; leave the key out to keep its default")
	}
	switch p := f.value.Addr().Interface().(type) {
	case *time.Duration:
		s, ok := raw.(string)
		if !ok {
			return fmt.Errorf("must be a duration such as 90s or 10m, not %v", raw)
		}
		d, err := time.ParseDuration(s)
		if err != nil {
			return fmt.Errorf("must be a duration such as 90s or 10m, not %q", s)
		}
		*p = d
	case *int:
		return setInt(p, raw)
	case *bool:
		return setBool(p, raw)
	case *string, *Secret, *StoreURL:
		s, ok := raw.(string)
		if !ok {
			return fmt.Errorf("must be text, not %s", kindOf(raw))
		}
		f.value.SetString(s)
	case *[]string, *[]Secret:
		return f.setList(raw)
	case *map[string][]string:
		return setOrigins(p, raw)
	case *map[string]Customers:
		return setCustomers(p, raw)
	case *map[string][]ReturnTo:
		return setReturns(p, raw)
	case *[]Operator:
		return setOperators(p, raw)
	default:
		panic("configs: no decoder for " + f.key) // a new type in Config needs one
	}
	return nil
}

func setInt(p *int, raw any) error {
	switch v := raw.(type) {
	case int:
		*p = v
	case string: // from the environment
		n, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("must be a whole number, not %q", v)
		}
		*p = n
	default:
		return fmt.Errorf("must be a whole number, not %v", raw)
	}
	return nil
}

func setBool(p *bool, raw any) error {
	switch v := raw.(type) {
	case bool:
		*p = v
	case string:
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("must be true or false, not %q", v)
		}
		*p = b
	default:
		return fmt.Errorf("must be true or false, not %v", raw)
	}
	return nil
}

// setList takes a YAML list of texts, or one text with commas (the environment).
func (f field) setList(raw any) error {
	texts, err := textsOf(raw)
	if err != nil {
		return err
	}
	list := reflect.MakeSlice(f.value.Type(), len(texts), len(texts))
	for i, s := range texts {
		list.Index(i).SetString(s)
	}
	f.value.Set(list)
	return nil
}

// setLines takes the lines of a …File: for operators "name role tokenHash".
func (f field) setLines(lines []string) error {
	entries := make([]any, len(lines))
	for i, line := range lines {
		entries[i] = line
		if f.value.Type() != reflect.TypeFor[[]Operator]() {
			continue
		}
		words := strings.Fields(line)
		if len(words) != 3 {
			return fmt.Errorf("entry %d must be: name role tokenHash", i+1)
		}
		entries[i] = map[string]any{"name": words[0], "role": words[1], "tokenHash": words[2]}
	}
	return f.set(entries)
}

func textsOf(raw any) ([]string, error) {
	var out []string
	switch v := raw.(type) {
	case string:
		for _, s := range strings.Split(v, ",") {
			if s = strings.TrimSpace(s); s != "" {
				out = append(out, s)
			}
		}
	case []any:
		for i, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, fmt.Errorf("must be a list of texts; entry %d is %s", i+1, kindOf(e))
			}
			out = append(out, s)
		}
	default:
		return nil, fmt.Errorf("must be a list of texts, not %s", kindOf(raw))
	}
	return out, nil
}

func setOrigins(p *map[string][]string, raw any) error {
	m, ok := raw.(map[string]any)
	if !ok {
		return fmt.Errorf("must map a room to a list of origins, not be %s", kindOf(raw))
	}
	out := make(map[string][]string, len(m))
	for room, v := range m {
		list, err := textsOf(v)
		if err != nil {
			return fmt.Errorf("of room %q %w", room, err)
		}
		out[room] = list
	}
	*p = out
	return nil
}

func setOperators(p *[]Operator, raw any) error {
	list, ok := raw.([]any)
	if !ok {
		return fmt.Errorf("must be a list of {name, role, tokenHash}, not %s", kindOf(raw))
	}
	var out []Operator
	for i, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			return fmt.Errorf("must be a list of {name, role, tokenHash}; entry %d is %s", i+1, kindOf(e))
		}
		var o Operator
		for _, key := range sortedKeys(m) {
			s, isText := m[key].(string)
			switch {
			case !isText:
				return fmt.Errorf("entry %d: %s must be text, not %s", i+1, key, kindOf(m[key]))
			case key == "name":
				o.Name = s
			case key == "role":
				o.Role = s
			case key == "tokenHash":
				o.TokenHash = s
			default:
				return fmt.Errorf("entry %d: unknown key %q; it takes name, role and tokenHash", i+1, key)
			}
		}
		out = append(out, o)
	}
	*p = out
	return nil
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "empty"
	case string:
		return "text"
	case bool:
		return "true or false"
	case int, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a group of keys"
	}
	return fmt.Sprintf("a %T", v)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
