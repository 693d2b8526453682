package redact

import (
	"net/url"
	"reflect"
	"strings"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
)

// Kind says how a value of a configuration may be shown.
type Kind uint8

// The kinds.
const (
	Plain   Kind = iota // as it is
	Secret              // never
	Address             // as [URL] shows it
	Path                // the path of an address, as [URL] shows it
	File                // as it is: the name of a file that holds a secret
)

// Shape describes the value that belongs at one place of a configuration: its Go type, and how it may be shown. Both
// follow from the types of the configuration, so that a new key is covered by its type alone.
type Shape struct {
	Type reflect.Type // not a pointer
	Kind Kind
	open bool // Type is the contents of a header whose values may be shown
}

// ShapeOf returns the shape of a configuration of type t.
func ShapeOf(t reflect.Type) Shape { return Shape{Type: bare(t)} }

func bare(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// Key is a key of a mapping in YAML, and the field of the struct that it stands for.
type Key struct {
	Name  string
	Index []int // as for reflect.Value.FieldByIndex
	Shape Shape
}

// Keys returns the keys that a mapping with a struct's shape may have, including those of inlined structs; none for
// other shapes. open is the shape of the values under any other key; its Type is nil if other keys are not allowed.
func (s Shape) Keys() (keys []Key, open Shape) {
	switch s.Type.Kind() {
	case reflect.Map:
		return nil, s.under("", s.Type.Elem())
	case reflect.Struct:
	default:
		return nil, Shape{}
	}
	for i := range s.Type.NumField() {
		f := s.Type.Field(i)
		tag, ok := f.Tag.Lookup("yaml")
		if !ok || !f.IsExported() || tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if strings.Contains(options, "inline") {
			inner, more := Shape{Type: bare(f.Type)}.Keys()
			for _, k := range inner {
				k.Index = append([]int{i}, k.Index...)
				keys = append(keys, k)
			}
			if more.Type != nil {
				open = more
			}
			continue
		}
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		keys = append(keys, Key{name, []int{i}, s.under(name, f.Type)})
	}
	return keys, open
}

// Under returns the shape of the value under a key; false if there is no such key. Everything below a secret is secret,
// even where nothing belongs.
func (s Shape) Under(key string) (Shape, bool) {
	if s.Type.Kind() == reflect.Map {
		return s.under(key, s.Type.Elem()), true
	}
	if s.Kind == Secret {
		return s, true
	}
	keys, open := s.Keys()
	for _, k := range keys {
		if k.Name == key {
			return k.Shape, true
		}
	}
	if open.Type == nil {
		return Shape{}, false
	}
	open.open = OpenHeader(key)
	return open, true
}

// Elem returns the shape of a list element; false if s is not a list. Everything below a secret is secret, as for
// Under.
func (s Shape) Elem() (Shape, bool) {
	if s.Type.Kind() != reflect.Slice {
		return s, s.Kind == Secret
	}
	e := s.under("", s.Type.Elem())
	if e.Kind == Plain {
		e.Kind = s.Kind
	}
	return e, true
}

// under returns the shape of a value of type t under a key of s.
func (s Shape) under(key string, t reflect.Type) Shape {
	t = bare(t)
	if key == "endpoint_params" && t == reflect.TypeFor[map[string]string]() {
		t = reflect.TypeFor[parameters]()
	}
	return Shape{Type: t, Kind: s.kind(key, t)}
}

func (s Shape) kind(key string, t reflect.Type) Kind {
	if s.Kind == Secret { // and so are its parts
		return Secret
	}
	switch t {
	case reflect.TypeFor[config.Secret](), reflect.TypeFor[url.Values](): // parameters of a scrape
		return Secret
	case reflect.TypeFor[config.URL]():
		return Address
	}
	switch s.Type { // types that do not mark their secrets
	case reflect.TypeFor[Headers]():
		return secretUnless(OpenHeader(key))
	case reflect.TypeFor[parameters]():
		return secretUnless(OpenParameter(key))
	case reflect.TypeFor[config.Header]():
		switch key {
		case "values":
			return secretUnless(s.open)
		case "files":
			return File
		}
	case reflect.TypeFor[model.LabelSet]():
		switch {
		case strings.HasPrefix(key, model.ParamLabelPrefix):
			return Secret
		case key == model.MetricsPathLabel:
			return Path
		}
	}
	return kindOfKey(key, t)
}

func secretUnless(open bool) Kind {
	if open {
		return Plain
	}
	return Secret
}

// kindOfKey classifies a text by its key alone.
func kindOfKey(key string, t reflect.Type) Kind {
	texts := t.Kind() == reflect.String
	switch {
	case key == "url", strings.HasSuffix(key, "_url"), texts && key == "target", key == "targets" && t.Kind() == reflect.Slice:
		return Address
	case texts && key == "metrics_path":
		return Path
	case texts && strings.HasSuffix(key, "_file") && key != "ca_file" && key != "cert_file":
		return File
	case texts && (key == "token_file_path" || key == "certificate_path" || key == "certificate_key_path"): // of azuread; a certificate file may contain the key
		return File
	}
	return Plain
}

// parameters stands for the type of endpoint_params in oauth2, which is unnamed.
type parameters map[string]string

// Holds reports whether a value of that shape, or a part of it, may hold a secret.
func (s Shape) Holds() bool { return s.holds(map[reflect.Type]bool{}) }

func (s Shape) holds(seen map[reflect.Type]bool) bool {
	if s.Kind == Secret || s.Kind == Address {
		return true
	}
	if seen[s.Type] {
		return false
	}
	seen[s.Type] = true
	if e, ok := s.Elem(); ok && s.Type.Kind() == reflect.Slice {
		return e.holds(seen)
	}
	keys, open := s.Keys()
	if open.Type != nil && open.holds(seen) {
		return true
	}
	for _, k := range keys {
		if k.Shape.holds(seen) {
			return true
		}
	}
	return false
}
