package redfish

import (
	"encoding/json"
	"errors"
	"math"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// object is a JSON object from a service. A value with an unexpected type counts as absent.
type object map[string]any

const (
	maxLabel = 256  // bytes of a label's value
	maxPath  = 1024 // bytes of a resource's path
)

var errNoObject = errors.New("the answer is JSON, but not an object")

// parse reads one object.
func parse(body []byte) (object, error) {
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		return nil, err
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, errNoObject
	}
	return o, nil
}

// at returns the value at a path of keys separated by dots. A key with an at sign (an annotation) contains dots itself,
// and must be the last one.
func (o object) at(path string) any {
	for {
		key, rest, more := strings.Cut(path, ".")
		if !more || strings.Contains(key, "@") {
			return o[path]
		}
		inner, ok := o[key].(map[string]any)
		if !ok {
			return nil
		}
		o, path = inner, rest
	}
}

// sub returns the object at a path; nil if there is none.
func (o object) sub(path string) object {
	inner, _ := o.at(path).(map[string]any)
	return inner
}

// list returns the objects of the array at a path.
func (o object) list(path string) []object {
	all, _ := o.at(path).([]any)
	out := make([]object, 0, len(all))
	for _, v := range all {
		if inner, ok := v.(map[string]any); ok {
			out = append(out, inner)
		}
	}
	return out
}

// number returns the number at a path. Some services send numbers as strings.
func (o object) number(path string) (float64, bool) { return number(o.at(path)) }

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return 0, false
		}
		return f, true
	}
	return 0, false
}

// text returns the string at a path, fit for a label. It formats a number, and of a list of objects with a member
// "Member", as some iDRACs send, takes the first.
func (o object) text(path string) string {
	switch v := o.at(path).(type) {
	case string:
		return label(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		if all := o.list(path); len(all) > 0 {
			return all[0].text("Member")
		}
	}
	return ""
}

// first returns the first non-empty text at these paths.
func (o object) first(paths ...string) string {
	for _, p := range paths {
		if s := o.text(p); s != "" {
			return s
		}
	}
	return ""
}

// label returns s without control characters and surrounding blanks, in at most maxLabel bytes.
func label(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s))
	return strings.ToValidUTF8(s[:min(len(s), maxLabel)], "")
}

// link returns the path of the resource that o is or refers to: "@odata.id", or "href" from before Redfish 1.0.
func (o object) link() (string, bool) {
	for _, key := range [...]string{"@odata.id", "href"} {
		if s, ok := o[key].(string); ok {
			return resourcePath(s)
		}
	}
	return "", false
}

// resourcePath returns the path of a reference, the same for each spelling: a resource of this service, below /redfish
// (or /rest, from before Redfish 1.0), without a fragment and a trailing slash. It returns false for a reference
// elsewhere.
func resourcePath(ref string) (string, bool) {
	ref, _, _ = strings.Cut(ref, "#")
	if len(ref) > maxPath {
		return "", false
	}
	u, err := url.Parse(ref)
	if err != nil || u.Host != "" || u.Scheme != "" || u.User != nil || u.Opaque != "" {
		return "", false
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if path != "/redfish" && !strings.HasPrefix(path, "/redfish/") && !strings.HasPrefix(path, "/rest/") {
		return "", false
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		if part == ".." || part == "." || part == "" {
			return "", false
		}
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return path, true
}

// sensorKey returns the identity of the sensor in a DataSourceUri: a resource, or a part of one.
func sensorKey(ref string) (string, bool) {
	path, ok := resourcePath(ref)
	if !ok {
		return "", false
	}
	if _, fragment, has := strings.Cut(ref, "#"); has {
		path += "/" + strings.Trim(fragment, "/")
	}
	return path, true
}
