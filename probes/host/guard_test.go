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

	"hwsagent/inputs/panics"
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
	if panics.As(out[0].err) == nil || panics.As(out[0].err).Value != "no such thing" || g.panics.Count() != 1 || out[1].value != 7 || out[1].err != nil {
		t.Errorf("the outcomes are %+v", out)
	}
}
