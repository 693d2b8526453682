// Package tap lets people follow samples at a point of a running agent. Following never delays the samples: a slow
// reader misses samples, and learns how many.
package tap

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
)

// Point is a place that samples pass.
type Point string

// The points.
const (
	Inputs     Point = "inputs"     // as appended to the log by an input
	Relabelled Point = "relabelled" // after a target's external labels and write_relabel_configs
	Sent       Point = "sent"       // as accepted by a target
)

// Points returns all points.
func Points() []Point { return []Point{Inputs, Relabelled, Sent} }

// Bounds.
const (
	maxTaps = 8    // at a time
	MaxRate = 5000 // samples a second, of one tap
	buffer  = 2000 // samples buffered for the reader of a tap
)

// ErrTooMany means that the maximum number of taps is open.
var ErrTooMany = fmt.Errorf("there are %d taps already: end one of them", maxTaps)

// Options select what to follow.
type Options struct {
	Point  Point
	Target string // for Relabelled and Sent
	Input  string // for Inputs and Relabelled: "host" or "probe host"; empty: all
	// Match selects series by their labels at the point; empty: everything.
	Match []*labels.Matcher
	Rate  int // most samples a second, up to MaxRate
	// Relabel returns the labels that the target gets, empty if it does not get the series. It is called by one
	// goroutine at a time.
	Relabel func(labels.Labels) labels.Labels
}

// Sample is one passing sample. It must not be kept after the call.
type Sample struct {
	Labels labels.Labels
	T      int64 // ms
	V      float64
	H      *histogram.Histogram // nil, or the value
	FH     *histogram.FloatHistogram
}

// Item is a sample for a reader, or a count of missed samples.
type Item struct {
	Time   time.Time         `json:"time,omitzero"` // the sample's
	Of     string            `json:"of,omitempty"`  // the input, such as "probe host", or the target
	Labels map[string]string `json:"labels,omitempty"`
	Value  string            `json:"value,omitempty"`  // JSON has no NaN; "stale" ends a series; or a histogram
	Missed uint64            `json:"missed,omitempty"` // samples missed since the last item, beyond the rate or too fast for the reader
}

// Hub holds all taps of an agent. The zero value has none. Safe for concurrent use.
type Hub struct {
	mu   sync.Mutex
	taps atomic.Pointer[[]*Tap] // lists are immutable; nil: none
}

// Tap is the tap of one reader.
type Tap struct {
	o      Options
	items  chan Item
	missed atomic.Uint64

	mu     sync.Mutex
	second time.Time // the second that count covers
	count  int
}

// Open opens a tap. The caller must close it.
func (h *Hub) Open(o Options) (*Tap, error) {
	if o.Rate < 1 || o.Rate > MaxRate {
		return nil, fmt.Errorf("the rate %d is not from 1 to %d samples a second", o.Rate, MaxRate)
	}
	if (o.Point == Inputs) != (o.Target == "") {
		return nil, errors.New("the points relabelled and sent are those of a target, the point inputs is not")
	}
	if o.Point == Sent && o.Input != "" {
		return nil, errors.New("sent samples cannot be selected by input: select them by labels")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var taps []*Tap
	if old := h.taps.Load(); old != nil {
		taps = append(taps, *old...)
	}
	if len(taps) >= maxTaps {
		return nil, ErrTooMany
	}
	t := &Tap{o: o, items: make(chan Item, buffer)}
	taps = append(taps, t)
	h.taps.Store(&taps)
	return t, nil
}

// Close closes a tap.
func (h *Hub) Close(t *Tap) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var taps []*Tap
	for _, other := range *h.taps.Load() {
		if other != t {
			taps = append(taps, other)
		}
	}
	if len(taps) == 0 {
		h.taps.Store(nil)
		return
	}
	h.taps.Store(&taps)
}

// Active reports whether any tap is open; without one, callers need not pass samples.
func (h *Hub) Active() bool { return h.taps.Load() != nil }

// Taken passes samples that an input of that kind and name has appended.
func (h *Hub) Taken(kind, name string, samples iter.Seq[Sample]) {
	h.each(func(t *Tap) {
		if t.o.Point != Sent && (t.o.Input == "" || t.o.Input == name || t.o.Input == kind+" "+name) {
			t.offer(kind+" "+name, samples)
		}
	})
}

// Delivered passes samples that a target has accepted, with the labels that it received.
func (h *Hub) Delivered(target string, samples iter.Seq[Sample]) {
	h.each(func(t *Tap) {
		if t.o.Point == Sent && t.o.Target == target {
			t.offer("target "+target, samples)
		}
	})
}

func (h *Hub) each(do func(*Tap)) {
	if taps := h.taps.Load(); taps != nil {
		for _, t := range *taps {
			do(t)
		}
	}
}

// offer passes on the samples that the tap selects, as far as its buffer has room.
func (t *Tap) offer(of string, samples iter.Seq[Sample]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.second) >= time.Second {
		t.second, t.count = now, 0
	}
	for s := range samples {
		if t.o.Relabel != nil {
			s.Labels = t.o.Relabel(s.Labels)
		}
		if s.Labels.IsEmpty() || !matches(t.o.Match, s.Labels) {
			continue
		}
		if t.count >= t.o.Rate || len(t.items) == cap(t.items) {
			t.missed.Add(1)
			continue
		}
		t.count++
		t.items <- Item{Time: time.UnixMilli(s.T), Of: of, Labels: s.Labels.Map(), Value: s.text()} // cannot block: only offer sends, and there is room
	}
}

// Items returns the channel of the tap's items.
func (t *Tap) Items() <-chan Item { return t.items }

// Missed returns how many samples the reader missed since the last call.
func (t *Tap) Missed() uint64 { return t.missed.Swap(0) }

func matches(all []*labels.Matcher, ls labels.Labels) bool {
	for _, m := range all {
		if !m.Matches(ls.Get(m.Name)) {
			return false
		}
	}
	return true
}

// text returns the sample's value.
func (s Sample) text() string {
	switch {
	case s.H != nil:
		return s.H.String()
	case s.FH != nil:
		return s.FH.String()
	case value.IsStaleNaN(s.V):
		return "stale"
	}
	return strconv.FormatFloat(s.V, 'g', -1, 64)
}
