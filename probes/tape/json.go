package tape

import (
	"bytes"
	"encoding/json"
)

// minNumber is the least length of a number that is learned: a shorter one may mean anything.
const minNumber = 8

// LearnJSON learns the texts and long numbers of a JSON value whose key identity gives a kind for; parent is the key of the object
// that has the key. Lists pass their key on. What is no JSON has nothing to learn.
func (r *Redactor) LearnJSON(text []byte, identity func(parent, key string) (kind string)) {
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	var v any
	if in.Decode(&v) != nil {
		return
	}
	var walk func(parent, key string, v any)
	walk = func(parent, key string, v any) {
		switch x := v.(type) {
		case map[string]any:
			for k, below := range x {
				walk(key, k, below)
			}
		case []any:
			for _, item := range x {
				walk(parent, key, item)
			}
		case string:
			if kind := identity(parent, key); kind != "" {
				r.Learn(kind, x)
			}
		case json.Number:
			if kind := identity(parent, key); kind != "" && len(x) >= minNumber {
				r.Learn(kind, string(x))
			}
		}
	}
	walk("", "", v)
}
