package inputs

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal"
)

// bare is a caller of an input that keeps no labels: it passes them only after ErrNotFound.
type bare struct {
	in   *Input
	refs map[string]storage.SeriesRef
	ends func(storage.AppenderV2) error

	again, skipped int // samples appended again with labels; skipped by the input
}

func newBare(in *Input) *bare {
	return &bare{in: in, refs: map[string]storage.SeriesRef{}, ends: storage.AppenderV2.Commit}
}

// send appends one sample of each series, at the present time.
func (c *bare) send(t *testing.T, v float64, series ...labels.Labels) {
	t.Helper()
	app := c.in.AppenderV2(t.Context())
	for _, full := range series {
		name, ls := full.String(), labels.EmptyLabels()
		for range 2 {
			ref, err := app.Append(c.refs[name], ls, 0, time.Now().UnixMilli(), v, nil, nil, storage.AOptions{})
			if ls.IsEmpty() && errors.Is(err, storage.ErrNotFound) {
				ls, c.again = full, c.again+1
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if ref != 0 {
				c.refs[name] = ref
			}
			break
		}
	}
	c.skipped = app.(Skipper).Skipped()
	if err := c.ends(app); err != nil {
		t.Fatal(err)
	}
}

// cell is what a case of TestWithoutLabels begins with: callers without labels of two inputs, which share a log.
type cell struct {
	*rig
	a, b *bare
}

// TestWithoutLabels: a reference without labels counts as the series that it is: once, for its owner, under its name, within the limit.
func TestWithoutLabels(t *testing.T) {
	x, y, up := labels.FromStrings("__name__", "x"), labels.FromStrings("__name__", "y"), labels.FromStrings("__name__", "up")
	lab := labels.FromStrings("__name__", "x", "site", "lab")
	for name, tc := range map[string]struct {
		do       func(*testing.T, *cell)
		limit    int // of a's series; 0 is 1
		again    int // of a, after its first samples
		skipped  int // of a's last samples
		series   [2]int
		refused  string // the example of a
		rivalry  string // the example of a and b
		newest   []string
		external bool
	}{
		"a series of the input": {
			do: func(t *testing.T, c *cell) { c.a.send(t, 2, x) }, series: [2]int{1, 0}, newest: []string{"x=2"},
		},
		"twice in a batch": {
			do: func(t *testing.T, c *cell) { c.a.send(t, 2, y, y) }, limit: 2, again: 1, series: [2]int{2, 0}, newest: []string{"x=1", "y=2"},
		},
		"it has ended": {
			do:     func(t *testing.T, c *cell) { c.a.send(t, stale(), x); c.a.send(t, 2, x) },
			series: [2]int{1, 0}, newest: []string{"x=2"},
		},
		"it has ended, and another took its place": {
			do:    func(t *testing.T, c *cell) { c.a.send(t, stale(), x); c.a.send(t, 2, y); c.a.send(t, 3, x) },
			again: 1, skipped: 1, series: [2]int{1, 0}, refused: `{__name__="x"}`, newest: []string{"y=2"},
		},
		"it lapsed": {
			do: func(t *testing.T, c *cell) {
				time.Sleep(lapse + 2*sweepEvery)
				c.b.send(t, 1, y)
				c.a.send(t, 2, x)
			},
			series: [2]int{1, 1}, newest: []string{"x=2", "y=1"},
		},
		"the log has forgotten it": {
			do:    func(t *testing.T, c *cell) { c.log.forget("x"); c.a.send(t, 2, x); c.a.send(t, 3, x) },
			again: 1, series: [2]int{1, 0}, newest: []string{"x=3"},
		},
		"it has ended, and the log has forgotten it": {
			do:    func(t *testing.T, c *cell) { c.a.send(t, stale(), x); c.log.forget("x"); c.a.send(t, 2, x) },
			again: 1, series: [2]int{1, 0}, newest: []string{"x=2"},
		},
		"a report beyond the limit": {
			do: func(t *testing.T, c *cell) {
				c.a.send(t, 1, up)
				c.a.send(t, stale(), up)
				c.a.send(t, 2, up)
			},
			again: 1, series: [2]int{2, 0}, newest: []string{"up=2", "x=1"},
		},
		"a batch that was dropped": {
			do: func(t *testing.T, c *cell) {
				c.a.send(t, stale(), x)
				c.a.ends = storage.AppenderV2.Rollback
				c.a.send(t, 2, y)
				c.a.send(t, 2, y)
				c.a.ends = storage.AppenderV2.Commit
				c.a.send(t, 3, y)
			},
			again: 1, series: [2]int{1, 0}, newest: []string{"y=3"},
		},
		"another input has it": {
			do: func(t *testing.T, c *cell) {
				c.b.send(t, 2, x)
				c.b.send(t, 3, x)
			},
			series: [2]int{1, 0}, rivalry: `{__name__="x"}`, newest: []string{"x=3"},
		},
		"another input had it": {
			do: func(t *testing.T, c *cell) {
				c.b.send(t, 2, x)
				time.Sleep(lapse + time.Second)
				c.b.send(t, 3, x)
				c.b.send(t, 4, x)
			},
			series: [2]int{0, 1}, newest: []string{"x=4"},
		},
		"another input had it, and the limit is reached": {
			do: func(t *testing.T, c *cell) {
				c.a.send(t, stale(), x)
				c.b.send(t, 2, x)
				c.a.send(t, 3, y)
				time.Sleep(lapse + time.Second)
				c.a.send(t, 4, y, x)
			},
			again: 1, skipped: 1, series: [2]int{1, 0}, refused: `{__name__="x"}`, newest: []string{"y=4"},
		},
		"it has a counterpart at the targets": {
			do: func(t *testing.T, c *cell) {
				c.b.send(t, 1, lab)
				c.b.send(t, stale(), lab)
				c.b.send(t, 2, lab)
			},
			series: [2]int{1, 1}, rivalry: `{__name__="x"} and {__name__="x", site="lab"}`, newest: []string{"x=1", "x=2"}, external: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				c := &cell{r, newBare(r.Input("scrape", "a", Settings{MaxSeries: max(1, tc.limit)})), newBare(r.Input("scrape", "b", Settings{}))}
				if tc.external {
					r.Become(labels.FromStrings("site", "lab"))
				}
				c.a.send(t, 1, x)
				c.a.again = 0
				time.Sleep(time.Second)
				tc.do(t, c)
				if c.a.again != tc.again || c.a.skipped != tc.skipped {
					t.Errorf("%d samples were appended again, and %d are skipped; want %d and %d", c.a.again, c.a.skipped, tc.again, tc.skipped)
				}
				r.wants(t, tc.newest...)
				status := r.Status()
				if got := [2]int{status[0].Series, status[1].Series}; got != tc.series {
					t.Errorf("the inputs have %v series, want %v", got, tc.series)
				}
				if status[0].Example != tc.refused || status[0].Refused != uint64(tc.skipped) {
					t.Errorf("%d samples are refused, as of %q; want %d of %q", status[0].Refused, status[0].Example, tc.skipped, tc.refused)
				}
				var rivalry []string
				for _, d := range r.Duplicates() {
					rivalry = append(rivalry, d.Example)
				}
				if got := strings.Join(rivalry, "; "); got != tc.rivalry {
					t.Errorf("the inputs share %q, want %q", got, tc.rivalry)
				}
				known := 0
				for range r.series.All() {
					known++
				}
				if n := r.Size(); n != known {
					t.Errorf("%d series count, %d have an account", n, known)
				}
				for _, s := range r.log.samples {
					if strings.HasPrefix(s, "{}") {
						t.Errorf("the log has a sample without a name: %s", s)
					}
				}
			})
		})
	}
}

// TestWithoutLabelsInTheLog: the log itself takes a reference without labels for as long as it knows the series, and says when it
// does not.
func TestWithoutLabelsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, err := wal.Open(wal.Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := log.Close(); err != nil {
				t.Error(err)
			}
		}()
		p := NewPath(log, slog.New(slog.DiscardHandler))
		c := newBare(p.Input("scrape", "a", Settings{Interval: 45 * time.Minute}))
		ls := labels.FromStrings("__name__", "x")
		want := func(again int, v float64) {
			t.Helper()
			got := ""
			for _, s := range p.Newest(nil) {
				got += fmt.Sprintf("%s=%v ", s.Labels, s.V)
			}
			if w := fmt.Sprintf("%s=%v ", ls, v); got != w || c.again != again {
				t.Errorf("the newest samples are %sand %d were appended again; want %sand %d", got, c.again, w, again)
			}
		}
		for n := range 4 {
			c.send(t, float64(n), ls)
			want(1, float64(n))
			time.Sleep(45 * time.Minute)
		}
		c.send(t, stale(), ls)
		time.Sleep(time.Minute)
		c.send(t, 5, ls)
		want(1, 5)
		time.Sleep(time.Minute)
		c.send(t, stale(), ls)
		time.Sleep(10 * time.Minute) // the log forgets what was marked stale
		c.send(t, 6, ls)
		want(2, 6)
	})
}
