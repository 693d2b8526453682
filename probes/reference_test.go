package probes

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/relabel"
)

// rounds runs a probe for n rounds. It returns the lines of its own series, and the last error; before is called before each round.
func rounds(t *testing.T, rec *recorder, n int, s Spec, before func(n int)) (own []string, lastError string) {
	r := NewRunner(rec, slog.New(slog.DiscardHandler))
	r.Apply([]Spec{s})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	for i := range n {
		before(i + 1)
		time.Sleep(s.Interval) // of the bubble
		synctest.Wait()
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return slices.DeleteFunc(rec.all(), func(l string) bool { return !strings.HasPrefix(l, `{__name__="a"`) }), r.Status()[0].LastError
}

// TestForgottenSeries: when the log has forgotten the series, a round goes on with each of them, and ends none.
func TestForgottenSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probeFunc{f: func(_ context.Context, n int, r *Round) error {
			r.Add(famA, float64(n), "x", "1")
			r.AddSample(Sample{Family: famA, Value: float64(n), Labels: []string{"x", "timed"}, T: int64(n)})
			r.AddSample(Sample{Family: famA, Value: float64(n), Labels: []string{"x", "timed"}, T: int64(n) + 100})
			if n < 3 {
				r.Add(famA, float64(n), "x", "ends")
			}
			return nil
		}}
		rec := &recorder{}
		got, lastError := rounds(t, rec, 4, spec("p", p), func(n int) {
			if n == 3 {
				rec.forget()
			}
		})
		var want []string
		for _, v := range []string{"1", "2", "3", "4"} {
			for _, x := range []string{"1", "timed", "timed", "ends"} {
				if x != "ends" || v < "3" {
					want = append(want, `{__name__="a", instance="i", job="p", x="`+x+`"} `+v)
				}
			}
		}
		if !slices.Equal(got, want) || lastError != "" {
			t.Errorf("%s\n%s\nwant:\n%s", lastError, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestSeriesBecomeOne: of series that relabelling makes one, a round has the first; another value is refused by name. The series
// goes on with any of them.
func TestSeriesBecomeOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probeFunc{f: func(_ context.Context, n int, r *Round) error {
			for y, v := range [][]float64{{1, 2}, {3, 4}, {5, 5}, {0, 6}, {7, 0}, {8, 9}}[n-1] {
				if v > 0 {
					r.Add(famA, v, "x", "1", "y", string(rune('a'+y)))
				}
			}
			return nil
		}}
		s := spec("p", p)
		s.Relabel = []*relabel.Config{{Regex: relabel.MustNewRegexp("y"), Action: relabel.LabelDrop}}
		got, lastError := rounds(t, &recorder{}, 6, s, func(int) {})
		var want []string
		for _, v := range []string{"1", "3", "5", "6", "7", "8"} {
			want = append(want, `{__name__="a", instance="i", job="p", x="1"} `+v)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if want := `{__name__="a", instance="i", job="p", x="1"}: duplicate sample`; !strings.Contains(lastError, want) {
			t.Errorf("the last round says %q, want %q", lastError, want)
		}
		for i, err := range p.committed {
			if refused := i < 2 || i == 5; (err != nil) != refused {
				t.Errorf("round %d committed with %v", i+1, err)
			}
		}
	})
}
