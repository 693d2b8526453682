package otlp

import (
	"fmt"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"

	"hwsagent/receivers"
)

// Memory that a request takes as objects, in bytes: for each message, for each byte of a list of small numbers, for
// each byte of JSON.
const (
	messageBytes = 256
	numberBytes  = 8
	jsonBytes    = 4
)

// maxNesting bounds nested values: attributes of attributes.
const (
	maxNesting   = 8
	maxJSONDepth = 64
)

// shape says which fields of a message are messages, and their shapes.
type shape struct {
	fields map[protowire.Number]*shape
	lists  map[protowire.Number]bool // packed numbers of variable length
	value  bool                      // an AnyValue: it may hold others
}

// newShape returns the shape of ExportMetricsServiceRequest, as of OTLP 1.9.
func newShape() *shape {
	of := func(fields map[protowire.Number]*shape) *shape { return &shape{fields: fields} }
	value, pair := &shape{value: true}, &shape{}
	pair.fields = map[protowire.Number]*shape{2: value}
	value.fields = map[protowire.Number]*shape{5: of(map[protowire.Number]*shape{1: value}), 6: of(map[protowire.Number]*shape{1: pair})}
	exemplar := of(map[protowire.Number]*shape{7: pair})
	buckets := &shape{lists: map[protowire.Number]bool{2: true}}
	points := func(fields map[protowire.Number]*shape) *shape { return of(map[protowire.Number]*shape{1: of(fields)}) }
	number := points(map[protowire.Number]*shape{5: exemplar, 7: pair})
	metric := of(map[protowire.Number]*shape{
		5: number, 7: number,
		9:  points(map[protowire.Number]*shape{8: exemplar, 9: pair}),
		10: points(map[protowire.Number]*shape{1: pair, 8: buckets, 9: buckets, 11: exemplar}),
		11: points(map[protowire.Number]*shape{6: of(nil), 7: pair}),
		12: pair,
	})
	scope := of(map[protowire.Number]*shape{1: of(map[protowire.Number]*shape{3: pair}), 2: metric})
	resource := of(map[protowire.Number]*shape{1: of(map[protowire.Number]*shape{1: pair, 3: of(nil)}), 2: scope})
	return of(map[protowire.Number]*shape{1: resource})
}

// weight is the estimated size of a decoded message.
type weight struct{ messages, numbers int64 }

func (w weight) bytes() int64 { return w.messages*messageBytes + w.numbers*numberBytes }

// add walks through a message of shape s without decoding it.
func (w *weight) add(s *shape, message []byte, nesting int) error {
	w.messages++
	if s.value {
		if nesting++; nesting > maxNesting {
			return tooDeep()
		}
	}
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("read the message: %w", protowire.ParseError(n))
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return fmt.Errorf("read the message: %w", protowire.ParseError(n))
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			if inner := s.fields[number]; inner != nil {
				if err := w.add(inner, value, nesting); err != nil {
					return err
				}
			} else if s.lists[number] {
				w.numbers += int64(len(value))
			}
		}
		message = message[n:]
	}
	return nil
}

// addJSON counts objects and lists, and refuses text that is nested too deep.
func (w *weight) addJSON(text []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			w.messages++
			if depth++; depth > maxJSONDepth {
				return tooDeep()
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

func tooDeep() error {
	return receivers.Refuse(receivers.TooComplex, http.StatusBadRequest, "values are nested more than %d deep", maxNesting)
}
