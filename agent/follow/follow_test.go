package follow

import (
	"errors"
	"iter"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
)

func series(name string, n int) iter.Seq[Sample] {
	return func(yield func(Sample) bool) {
		for i := range n {
			if !yield(Sample{Labels: labels.FromStrings("__name__", name), T: int64(i), V: float64(i)}) {
				return
			}
		}
	}
}

// got returns what waits in a follower.
func got(t *Follower) (texts []string) {
	for {
		select {
		case i := <-t.Items():
			texts = append(texts, i.Of+" "+i.Labels["__name__"]+" "+i.Value)
		default:
			return texts
		}
	}
}

// TestPoints: each follower gets the samples of its point, and only those.
func TestPoints(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want []string
	}{
		"inputs":          {Options{Point: Inputs}, []string{"probe a x 0", "probe b y 0"}},
		"one input":       {Options{Point: Inputs, Input: "b"}, []string{"probe b y 0"}},
		"by its kind":     {Options{Point: Inputs, Input: "probe a"}, []string{"probe a x 0"}},
		"another kind":    {Options{Point: Inputs, Input: "scrape a"}, nil},
		"selected":        {Options{Point: Inputs, Match: []*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, "__name__", "y|z")}}, []string{"probe b y 0"}},
		"sent":            {Options{Point: Sent, Target: "t"}, []string{"target t z 0"}},
		"sent to another": {Options{Point: Sent, Target: "u"}, nil},
		"relabelled": {Options{Point: Relabelled, Target: "t", Relabel: func(ls labels.Labels) labels.Labels {
			if ls.Get("__name__") == "x" {
				return labels.EmptyLabels()
			}
			return labels.FromStrings("__name__", "renamed")
		}, Match: []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "__name__", "renamed")}}, []string{"probe b renamed 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			var h Hub
			if h.Active() {
				t.Error("active without a follower")
			}
			c.o.Rate = 10
			f, err := h.Open(c.o)
			if err != nil {
				t.Fatal(err)
			}
			if !h.Active() {
				t.Error("not active with a follower")
			}
			h.Taken("probe", "a", series("x", 1))
			h.Taken("probe", "b", series("y", 1))
			h.Delivered("t", series("z", 1))
			if g := got(f); !slices.Equal(g, c.want) {
				t.Errorf("got %q, want %q", g, c.want)
			}
			h.Close(f)
			if h.Active() {
				t.Error("active after the last follower is closed")
			}
			h.Taken("probe", "a", series("x", 1))
			if g := got(f); g != nil {
				t.Errorf("a closed follower got %q", g)
			}
		})
	}
}

// TestBounds: beyond the rate, and beyond what the reader takes, samples are counted and not passed on; nothing waits.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h Hub
		slow, err := h.Open(Options{Point: Inputs, Rate: MaxRate})
		if err != nil {
			t.Fatal(err)
		}
		limited, err := h.Open(Options{Point: Inputs, Rate: 3})
		if err != nil {
			t.Fatal(err)
		}
		h.Taken("probe", "a", series("x", buffer+5))
		if n, m := len(got(limited)), limited.Missed(); n != 3 || m != buffer+2 {
			t.Errorf("at a rate of 3 got %d and missed %d", n, m)
		}
		if m := slow.Missed(); m != 5 {
			t.Errorf("who reads nothing missed %d, want 5", m)
		}
		if m := slow.Missed(); m != 0 {
			t.Errorf("told twice that %d were missed", m)
		}
		if n := len(got(slow)); n != buffer {
			t.Errorf("%d waited, want %d", n, buffer)
		}
		time.Sleep(time.Second)
		h.Taken("probe", "a", series("x", 2))
		if n := len(got(limited)); n != 2 {
			t.Errorf("a second later got %d, want 2", n)
		}
	})
}

func TestRefusals(t *testing.T) {
	var h Hub
	for name, o := range map[string]Options{
		"no rate":            {Point: Inputs},
		"too much":           {Point: Inputs, Rate: MaxRate + 1},
		"no target":          {Point: Sent, Rate: 1},
		"a target too much":  {Point: Inputs, Target: "t", Rate: 1},
		"an input of a sent": {Point: Sent, Target: "t", Input: "host", Rate: 1},
	} {
		if _, err := h.Open(o); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	for i := range maxFollowers + 1 {
		if _, err := h.Open(Options{Point: Inputs, Rate: 1}); errors.Is(err, ErrTooMany) != (i == maxFollowers) {
			t.Errorf("follower %d: %v", i, err)
		}
	}
}

func TestValues(t *testing.T) {
	for want, s := range map[string]Sample{
		"0.5": {V: 0.5}, "stale": {V: math.Float64frombits(value.StaleNaN)}, "NaN": {V: math.NaN()}, "+Inf": {V: math.Inf(1)},
		(&histogram.Histogram{Count: 1}).String():      {H: &histogram.Histogram{Count: 1}},
		(&histogram.FloatHistogram{Count: 2}).String(): {FH: &histogram.FloatHistogram{Count: 2}},
	} {
		if got := s.text(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
