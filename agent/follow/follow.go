// Package follow lets people follow samples at a point of a running agent. Following never delays the samples: a slow
// reader misses samples, and learns how many.
package follow

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
	maxFollowers = 8    // at a time
	MaxRate      = 5000 // samples a second, of one follower
	buffer       = 2000 // samples buffered for one follower
)

// ErrTooMany means that the maximum number of followers is there.
var ErrTooMany = fmt.Errorf("%d commands follow samples already: end one of them", maxFollowers)

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

// Hub holds all followers of an agent. The zero value has none. Safe for concurrent use.
type Hub struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*Follower] // lists are immutable; nil: none
}

// Follower is one reader of samples.
type Follower struct {
	o      Options
	items  chan Item
	missed atomic.Uint64

	mu     sync.Mutex
	second time.Time // the second that count covers
	count  int
}

// Open adds a follower. The caller must close it.
func (h *Hub) Open(o Options) (*Follower, error) {
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
	var all []*Follower
	if old := h.all.Load(); old != nil {
		all = append(all, *old...)
	}
	if len(all) >= maxFollowers {
		return nil, ErrTooMany
	}
	f := &Follower{o: o, items: make(chan Item, buffer)}
	all = append(all, f)
	h.all.Store(&all)
	return f, nil
}

// Close removes a follower.
func (h *Hub) Close(f *Follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*Follower
	for _, other := range *h.all.Load() {
		if other != f {
			all = append(all, other)
		}
	}
	if len(all) == 0 {
		h.all.Store(nil)
		return
	}
	h.all.Store(&all)
}

// Active reports whether anybody follows; without a follower, callers need not pass samples.
func (h *Hub) Active() bool { return h.all.Load() != nil }

// Taken passes samples that an input of that kind and name has appended.
func (h *Hub) Taken(kind, name string, samples iter.Seq[Sample]) {
	h.each(func(f *Follower) {
		if f.o.Point != Sent && (f.o.Input == "" || f.o.Input == name || f.o.Input == kind+" "+name) {
			f.offer(kind+" "+name, samples)
		}
	})
}

// Delivered passes samples that a target has accepted, with the labels that it received.
func (h *Hub) Delivered(target string, samples iter.Seq[Sample]) {
	h.each(func(f *Follower) {
		if f.o.Point == Sent && f.o.Target == target {
			f.offer("target "+target, samples)
		}
	})
}

func (h *Hub) each(do func(*Follower)) {
	if all := h.all.Load(); all != nil {
		for _, f := range *all {
			do(f)
		}
	}
}

// offer passes on the samples that the follower selects, as far as its buffer has room.
func (f *Follower) offer(of string, samples iter.Seq[Sample]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.second) >= time.Second {
		f.second, f.count = now, 0
	}
	for s := range samples {
		if f.o.Relabel != nil {
			s.Labels = f.o.Relabel(s.Labels)
		}
		if s.Labels.IsEmpty() || !matches(f.o.Match, s.Labels) {
			continue
		}
		if f.count >= f.o.Rate || len(f.items) == cap(f.items) {
			f.missed.Add(1)
			continue
		}
		f.count++
		f.items <- Item{Time: time.UnixMilli(s.T), Of: of, Labels: s.Labels.Map(), Value: s.text()} // cannot block: only offer sends, and there is room
	}
}

// Items returns the channel of the follower's items.
func (f *Follower) Items() <-chan Item { return f.items }

// Missed returns how many samples the reader missed since the last call.
func (f *Follower) Missed() uint64 { return f.missed.Swap(0) }

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
