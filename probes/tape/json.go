package tape

import (
	"bytes"
	"encoding/json"
)

// minNumber is the minimum length of a learned number: a shorter one may mean anything.
const minNumber = 8

// LearnJSON learns the texts and long numbers of a JSON value for whose keys identity returns a kind; parent is the key of the
// enclosing object. Items of a list have the key of the list. LearnJSON learns nothing from invalid JSON.
func (r *Redactor) LearnJSON(text []byte, identity func(parent, key string) (kind string)) {
	var walk func(parent, key string, raw json.RawMessage)
	walk = func(parent, key string, raw json.RawMessage) {
		raw = bytes.TrimSpace(raw)
		if len(raw) == 0 {
			return
		}
		switch first := raw[0]; {
		case first == '{':
			var below map[string]json.RawMessage
			if json.Unmarshal(raw, &below) == nil {
				for k, v := range below {
					walk(key, k, v)
				}
			}
		case first == '[':
			var items []json.RawMessage
			if json.Unmarshal(raw, &items) == nil {
				for _, v := range items {
					walk(parent, key, v)
				}
			}
		case first == '"':
			kind, text := identity(parent, key), ""
			if kind == "" || json.Unmarshal(raw, &text) != nil {
				return
			}
			r.Learn(kind, text)
			if written := string(raw[1 : len(raw)-1]); written != text { // with escapes, as the answer has it
				r.Learn(kind, written)
			}
		case first == '-' || '0' <= first && first <= '9':
			if kind := identity(parent, key); kind != "" && len(raw) >= minNumber {
				r.Learn(kind, string(raw))
			}
		}
	}
	var whole json.RawMessage
	if json.NewDecoder(bytes.NewReader(text)).Decode(&whole) == nil { // ignores anything that follows
		walk("", "", whole)
	}
}
