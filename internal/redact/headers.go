package redact

import (
	"encoding/json"
	"fmt"
)

// Headers are request headers by name. However they are printed, the values are hidden, unless [OpenHeader] allows
// them.
type Headers map[string]string

func (h Headers) masked() map[string]string {
	m := make(map[string]string, len(h))
	for name, value := range h {
		m[name] = Mark
		if OpenHeader(name) {
			m[name] = value
		}
	}
	return m
}

// String prints the masked headers.
func (h Headers) String() string { return fmt.Sprint(h.masked()) }

// GoString keeps %#v from printing secrets.
func (h Headers) GoString() string { return h.String() }

// MarshalYAML writes the masked headers.
func (h Headers) MarshalYAML() (any, error) { return h.masked(), nil }

// MarshalJSON writes the masked headers.
func (h Headers) MarshalJSON() ([]byte, error) { return json.Marshal(h.masked()) }
