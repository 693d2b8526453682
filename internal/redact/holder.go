package redact

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/common/config"
	"golang.org/x/net/http/httpproxy"
)

// Holder knows the secrets of configurations, including those in files that they name, which may change at any time. It
// is safe for concurrent use.
type Holder struct {
	inline Secrets
	files  []string

	mu   sync.Mutex
	seen map[string][2]string // the last two contents of each file
}

// Hold returns a holder for configurations: structs with yaml tags, or pointers to such. [Shape] decides which of their
// values are secrets.
func Hold(configurations ...any) *Holder {
	h, env := &Holder{seen: map[string][2]string{}}, httpproxy.FromEnvironment()
	for _, c := range configurations {
		if v := reflect.ValueOf(c); v.IsValid() {
			h.walk(v, ShapeOf(v.Type()))
		}
	}
	for _, proxy := range []string{env.HTTPProxy, env.HTTPSProxy} {
		if u, err := url.Parse(proxy); err == nil {
			h.inline.AddURL(u)
		}
	}
	slices.Sort(h.files)
	h.files = slices.Compact(h.files)
	return h
}

// Secrets returns the present secrets: it reads each file. They include each file's contents before its last change,
// because an answer in flight may still repeat them.
func (h *Holder) Secrets() *Secrets {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &Secrets{forms: slices.Clone(h.inline.forms)}
	for _, name := range h.files {
		last := h.seen[name]
		if text, err := ReadFile(name); err == nil && text != last[0] {
			last = [2]string{text, last[0]}
			h.seen[name] = last
		}
		s.Add(last[:]...)
	}
	return s
}

// walk adds the secrets of a value of that shape.
func (h *Holder) walk(v reflect.Value, s Shape) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if s.Kind == Address {
		h.address(v)
		return
	}
	switch v.Kind() {
	case reflect.String:
		switch s.Kind {
		case Secret:
			h.inline.Add(v.String())
		case File:
			h.file(v.String())
		}
	case reflect.Slice, reflect.Array:
		e, ok := s.Elem()
		for i := range v.Len() {
			if ok {
				h.walk(v.Index(i), e)
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if inner, ok := s.Under(k.String()); ok && k.Kind() == reflect.String {
				h.walk(v.MapIndex(k), inner)
			}
		}
	case reflect.Struct:
		h.fields(v, s)
	}
}

func (h *Holder) fields(v reflect.Value, s Shape) {
	keys, _ := s.Keys()
	basic := map[string]string{}
	for _, k := range keys {
		f, err := v.FieldByIndexErr(k.Index)
		if err != nil { // a nil inlined pointer
			continue
		}
		h.walk(f, k.Shape)
		if f.Kind() == reflect.String {
			basic[k.Name] = f.String()
		}
	}
	// Headers in an inlined map.
	for i := range s.Type.NumField() {
		if f := s.Type.Field(i); f.IsExported() && strings.Contains(f.Tag.Get("yaml"), ",inline") && f.Type.Kind() == reflect.Map {
			for _, k := range v.Field(i).MapKeys() {
				if inner, ok := s.Under(k.String()); ok {
					h.walk(v.Field(i).MapIndex(k), inner)
				}
			}
		}
	}
	// In the form in which HTTP carries them (RFC 7617, 2; RFC 6749, 2.3.1).
	for user, password := range map[string]string{"username": "password", "client_id": "client_secret"} {
		if basic[password] != "" {
			h.inline.AddBasic(basic[user], basic[password])
			h.inline.AddBasic(url.QueryEscape(basic[user]), url.QueryEscape(basic[password]))
		}
	}
}

func (h *Holder) file(name string) {
	if name != "" {
		h.files = append(h.files, name)
	}
}

func (h *Holder) address(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if u, err := url.Parse(v.String()); err == nil {
			h.inline.AddURL(u)
		}
	case reflect.Slice:
		for i := range v.Len() {
			h.address(v.Index(i))
		}
	default:
		if c, ok := v.Interface().(config.URL); ok {
			h.inline.AddURL(c.URL)
		}
	}
}
