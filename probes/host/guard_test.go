//go:build linux

package host

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/internal/panics"
	"hwsagent/probes"
)

func TestGuardLeavesAloneWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard[string]{limit: 2 * time.Second}
		release := make(chan struct{})
		var hung atomic.Int32
		read := func(key string) string {
			if key == "dead" {
				hung.Add(1)
				<-release
			}
			return "value of " + key
		}
		keys := []string{"dead", "alive"}
		check := func(step string, took time.Duration, reads int32, dead error) {
			t.Helper()
			began := time.Now()
			out := g.all(t.Context(), keys, read)
			if out[1].err != nil || out[1].value != "value of alive" {
				t.Errorf("%s: alive gave %+v", step, out[1])
			}
			if !errors.Is(out[0].err, dead) || (dead == nil && out[0].value != "value of dead") {
				t.Errorf("%s: dead gave %+v", step, out[0])
			}
			if d := time.Since(began); d != took {
				t.Errorf("%s took %v, want %v", step, d, took)
			}
			if n := hung.Load(); n != reads {
				t.Errorf("%s: dead was read %d times, want %d", step, n, reads)
			}
		}
		stuck := stuckError{g.limit}
		check("first round", g.limit, 1, stuck)
		check("second round", 0, 1, stuck)
		close(release)
		synctest.Wait()
		check("after it came back", 0, 2, nil)
	})
}

func TestGuardEndsWithTheRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard[int]{limit: time.Hour}
		release := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		out := g.all(ctx, []string{"a", "b", "c"}, func(key string) int {
			if key != "c" {
				<-release
			}
			return 7
		})
		if d := time.Since(began); d != time.Second {
			t.Errorf("it took %v", d)
		}
		for i := range 2 {
			if !errors.Is(out[i].err, context.DeadlineExceeded) {
				t.Errorf("outcome %d is %+v", i, out[i])
			}
		}
		if out[2].err != nil || out[2].value != 7 {
			t.Errorf("what had answered is lost: %+v", out[2])
		}
		close(release)
	})
}

func TestGuardCatchesPanics(t *testing.T) {
	g := guard[int]{limit: time.Minute, panics: panics.New("probe host", slog.New(slog.DiscardHandler))}
	out := g.all(t.Context(), []string{"bad", "good"}, func(key string) int {
		if key == "bad" {
			panic("no such thing")
		}
		return 7
	})
	if panics.As(out[0].err) == nil || panics.As(out[0].err).Value != "a value of type string" || g.panics.Count() != 1 || out[1].value != 7 || out[1].err != nil {
		t.Errorf("the outcomes are %+v", out)
	}
}

// waiting is a collector whose devices hang until the round's time for it is over, or for as long as a device may take.
type waiting struct{ limit time.Duration }

func (w waiting) read(ctx context.Context, r *probes.Round) error {
	g := guard[int]{limit: w.limit}
	out := g.all(ctx, []string{"hangs"}, func(string) int { <-ctx.Done(); time.Sleep(time.Minute); return 0 })
	return out[0].err
}

// quick is a collector that reads one value.
type quick struct{ family *probes.Family }

func (q quick) read(_ context.Context, r *probes.Round) error {
	r.Add(q.family, 1)
	return nil
}

// TestManyHangingCollectors: six collectors of which each waits for as long as a device may take leave time for the one after them,
// although all their time is more than the round's.
func TestManyHangingCollectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := New(Config{Collectors: []string{"loadavg"}}, quiet(), nil)
		if err != nil {
			t.Fatal(err)
		}
		p.collectors = nil
		add := func(name string, r reader) {
			p.collectors = append(p.collectors, &collector{name: name, labels: []string{"collector", name}, reader: r})
		}
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			add(name, waiting{limit: 2 * time.Second})
		}
		family := gauge("node_quick", "One value.")
		add("quick", quick{family})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r := probes.NewRound(0)
		if err := p.Collect(ctx, r); !errors.Is(err, probes.ErrPartial) {
			t.Errorf("the round says %v", err)
		}
		if ctx.Err() != nil {
			t.Error("the whole round's time is used up")
		}
		found := false
		for _, s := range r.Samples() {
			found = found || s.Family == family
		}
		if !found {
			t.Error("the collector after those that hang has no sample")
		}
		cancel()
		synctest.Wait()
		time.Sleep(2 * time.Minute) // of the bubble: the reads come back
	})
}
