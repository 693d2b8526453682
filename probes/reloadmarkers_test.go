package probes

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// TestStatusDuringReload: the status answers while a reload waits for a round whose commit hangs.
func TestStatusDuringReload(t *testing.T) {
	rec := &recorder{block: make(chan struct{})}
	p := func() Probe {
		return &probeFunc{f: func(_ context.Context, _ int, r *Round) error { r.Add(&Family{Name: "a"}, 1); return nil }}
	}
	one := func(identity string) Spec {
		s := spec("p", p())
		s.Identity, s.Interval, s.Timeout = identity, 50*time.Millisecond, 50*time.Millisecond
		return s
	}
	r := NewRunner(rec, slog.New(slog.DiscardHandler))
	r.Apply([]Spec{one("before")})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	time.Sleep(200 * time.Millisecond) // a round is in its commit, which hangs
	applied := make(chan struct{})
	go func() { r.Apply([]Spec{one("changed")}); close(applied) }()
	time.Sleep(50 * time.Millisecond)
	got := make(chan []Status, 1)
	go func() { got <- r.Status() }()
	select {
	case <-got:
	case <-time.After(3 * time.Second):
		t.Error("Status did not answer for 3 s while a reload waits for a commit")
	}
	close(rec.block)
	<-applied
	cancel()
	<-done
}

// TestWaitingMarkers: stale markers that wait because the log accepts nothing survive the change and the removal of their probe.
func TestWaitingMarkers(t *testing.T) {
	for _, way := range []string{"change", "remove"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec := &recorder{}
				f := func(_ context.Context, n int, r *Round) error {
					r.Add(&Family{Name: "stays"}, 1)
					if n == 1 {
						r.Add(&Family{Name: "goes"}, 1)
					}
					return nil
				}
				r := NewRunner(rec, slog.New(slog.DiscardHandler))
				r.Apply([]Spec{spec("p", &probeFunc{f: f})})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- r.Run(ctx) }()
				time.Sleep(10 * time.Second) // one round
				synctest.Wait()
				rec.mu.Lock()
				rec.fail = errors.New("log is full")
				rec.mu.Unlock()
				time.Sleep(10 * time.Second) // the round in which the series ends is refused
				synctest.Wait()
				rec.mu.Lock()
				rec.fail = nil
				rec.mu.Unlock()
				next := spec("p", &probeFunc{n: 1, f: f})
				next.Identity = "changed"
				specs := []Spec{next}
				if way == "remove" {
					specs = nil
				}
				r.Apply(specs)
				time.Sleep(30 * time.Second)
				cancel()
				<-done
				if got := rec.all(); !slices.Contains(got, `{__name__="goes", instance="i", job="p"} stale`) {
					t.Errorf("the series that ended has no stale marker:\n%s", strings.Join(got, "\n"))
				}
			})
		})
	}
}

// TestReportAfterLabels: a reload that changes the labels of a probe ends up and scrape_duration_seconds under the former labels, as all
// other series.
func TestReportAfterLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		f := func(_ context.Context, _ int, r *Round) error { r.Add(&Family{Name: "a"}, 1); return nil }
		r := NewRunner(rec, slog.New(slog.DiscardHandler))
		r.Apply([]Spec{spec("p", &probeFunc{f: f})})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(10 * time.Second)
		next := spec("p", &probeFunc{f: f})
		next.Identity, next.Labels = "changed", labels.FromStrings("job", "p", "instance", "other")
		r.Apply([]Spec{next})
		time.Sleep(30 * time.Second)
		cancel()
		<-done
		got := rec.all()
		for _, name := range []string{"a", "up", "scrape_duration_seconds"} {
			if !slices.Contains(got, `{__name__="`+name+`", instance="i", job="p"} stale`) {
				t.Errorf("%s under the former labels never ends", name)
			}
		}
	})
}

// skipping is a log before which an input is at its series limit: it skips the series with that name.
type skipping struct {
	*recorder
	name string
}

type skippingBatch struct {
	storage.AppenderV2
	name string
}

func (l skipping) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return skippingBatch{l.recorder.AppenderV2(ctx), l.name}
}

func (b skippingBatch) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	if ls.Get("__name__") == b.name {
		return 0, nil // see inputs.Skipper
	}
	return b.AppenderV2.Append(ref, ls, st, t, v, h, fh, o)
}

// TestSkippedIsNotCommitted: a probe of which max_series refuses samples does not learn that the log has all of them.
func TestSkippedIsNotCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probeFunc{f: func(_ context.Context, _ int, r *Round) error {
			r.Add(&Family{Name: "kept"}, 1)
			r.Add(&Family{Name: "skipped"}, 1)
			return nil
		}}
		rec := &recorder{}
		r := NewRunner(skipping{rec, "skipped"}, slog.New(slog.DiscardHandler))
		r.Apply([]Spec{spec("p", p)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		st := r.Status()[0]
		cancel()
		<-done
		if len(p.committed) == 0 || p.committed[0] == nil {
			t.Errorf("Committed got %v though a sample is not in the log", p.committed)
		}
		if st.Samples != 1 {
			t.Errorf("status says that %d samples were appended, want 1", st.Samples)
		}
	})
}
