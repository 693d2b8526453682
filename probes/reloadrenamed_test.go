package probes

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// TestRenamedProbeGoesOn: a probe that gets another name and keeps its labels has the same series. They are not marked
// stale after the first round under the new name, also if the former probe takes its time to end.
func TestRenamedProbeGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recorder{}
		named := func(name string, f func(ctx context.Context, n int, r *Round) error) Spec {
			s := spec(name, &probeFunc{f: f})
			s.Labels, s.Timeout = labels.FromStrings("job", "j", "instance", "i"), s.Interval
			return s
		}
		before := named("before", func(ctx context.Context, n int, r *Round) error {
			r.Add(&Family{Name: "a"}, 1)
			if n > 1 {
				<-ctx.Done()
				time.Sleep(grace / 2)
			}
			return nil
		})
		var rounds atomic.Int64
		after := named("after", func(_ context.Context, _ int, r *Round) error {
			rounds.Add(1)
			r.Add(&Family{Name: "a"}, 1)
			return nil
		})
		r := NewRunner(rec, slog.New(slog.DiscardHandler))
		r.Apply([]Spec{before})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(30 * time.Second) // the probe has had a round, and another one goes on
		time.Sleep(time.Until(after.firstRun(time.Now().Add(time.Second))) - grace/4)
		r.Apply([]Spec{after})
		if n := rounds.Load(); n > 0 || !strings.HasSuffix(rec.all()[len(rec.all())-1], " stale") {
			t.Errorf("%d rounds under the new name came before the former series ended", n)
		}
		time.Sleep(after.Interval)
		synctest.Wait()
		got := rec.all()
		cancel()
		<-done
		for _, name := range []string{"a", "up", "scrape_duration_seconds"} {
			series := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.HasPrefix(s, `{__name__="`+name+`"`) })
			if len(series) < 3 || strings.HasSuffix(series[len(series)-1], " stale") {
				t.Errorf("%s has ended, though its probe goes on: %q", name, series)
			}
		}
	})
}
