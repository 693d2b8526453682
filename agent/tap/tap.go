// Package tap lets people follow samples past a point of a running agent. What is followed is not held up: a reader
// that does not keep up loses samples, and is told how many.
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

// Point is where samples go past.
type Point string

// The points.
const (
	Inputs     Point = "inputs"     // as an input has appended them: they are in the log
	Relabelled Point = "relabelled" // the same, with a target's external labels and write_relabel_configs
	Sent       Point = "sent"       // as a target has accepted them
)

// Points are all points.
func Points() []Point { return []Point{Inputs, Relabelled, Sent} }

// Bounds.
const (
	maxTaps = 8    // at a time
	MaxRate = 5000 // samples a second, of one tap
	buffer  = 2000 // samples that wait for the reader of a tap
)

// ErrTooMany means that as many taps are open as may be.
var ErrTooMany = fmt.Errorf("there are %d taps already: end one of them", maxTaps)

// Options say what to follow.
type Options struct {
	Point  Point
	Target string // of Relabelled and Sent
	Input  string // of Inputs and Relabelled: "host" or "probe host"; empty: all
	// Match selects by the labels at the point; empty: everything.
	Match []*labels.Matcher
	Rate  int // samples a second that are passed on, up to MaxRate
	// Relabel gives the labels that the target gets, empty if it does not get the series. It is called
	// by one goroutine at a time.
	Relabel func(labels.Labels) labels.Labels
}

// Sample is one that goes past. It is not kept after the call that has it.
type Sample struct {
	Labels labels.Labels
	T      int64 // ms
	V      float64
	H      *histogram.Histogram // nil, or the value
	FH     *histogram.FloatHistogram
}

// Item is a sample as a reader gets it, or how many samples the reader did not get.
type Item struct {
	Time   time.Time         `json:"time,omitzero"` // the sample's
	Of     string            `json:"of,omitempty"`  // the input, such as "probe host", or the target
	Labels map[string]string `json:"labels,omitempty"`
	Value  string            `json:"value,omitempty"`  // JSON has no NaN; "stale" ends a series; or a histogram
	Missed uint64            `json:"missed,omitempty"` // further samples since the last item, beyond the rate or what the reader took
}

// Hub is all taps of an agent. The zero value has none. Safe for concurrent use.
type Hub struct {
	mu   sync.Mutex
	taps atomic.Pointer[[]*Tap] // a list is not changed; nil: none
}

// Tap is one reader's.
type Tap struct {
	o      Options
	items  chan Item
	missed atomic.Uint64

	mu     sync.Mutex
	second time.Time // that count is of
	count  int
}

// Open begins to follow. Close must be called.
func (h *Hub) Open(o Options) (*Tap, error) {
	if o.Rate < 1 || o.Rate > MaxRate {
		return nil, fmt.Errorf("the rate %d is not from 1 to %d samples a second", o.Rate, MaxRate)
	}
	if (o.Point == Inputs) != (o.Target == "") {
		return nil, errors.New("the points relabelled and sent are those of a target, the point inputs is not")
	}
	if o.Point == Sent && o.Input != "" {
		return nil, errors.New("what is sent is not of one input: select by labels")
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

// Close ends a tap.
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

// Active reports whether anybody follows anything: without, samples need not be shown.
func (h *Hub) Active() bool { return h.taps.Load() != nil }

// Taken shows samples that an input of that kind and name has appended.
func (h *Hub) Taken(kind, name string, samples iter.Seq[Sample]) {
	h.each(func(t *Tap) {
		if t.o.Point != Sent && (t.o.Input == "" || t.o.Input == name || t.o.Input == kind+" "+name) {
			t.offer(kind+" "+name, samples)
		}
	})
}

// Delivered shows samples that a target has accepted, with the labels that it got.
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

// offer passes on what the reader wants, and can have now.
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
		t.items <- Item{Time: time.UnixMilli(s.T), Of: of, Labels: s.Labels.Map(), Value: s.text()} // only offer sends, and there is room
	}
}

// Items are what the reader gets.
func (t *Tap) Items() <-chan Item { return t.items }

// Missed is how many samples the reader did not get since the last call.
func (t *Tap) Missed() uint64 { return t.missed.Swap(0) }

func matches(all []*labels.Matcher, ls labels.Labels) bool {
	for _, m := range all {
		if !m.Matches(ls.Get(m.Name)) {
			return false
		}
	}
	return true
}

// text is the sample's value.
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
