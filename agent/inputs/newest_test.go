package inputs

import (
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal"
)

// A late sample is not the current value; the newest sample is the one with the newest time.
func TestLateIsNotNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		in := r.Input("receiver", "import", Settings{})
		add := func(name string, at time.Time, v float64) {
			t.Helper()
			app := in.AppenderV2(t.Context())
			if _, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, name), 0, at.UnixMilli(), v, nil, nil, storage.AOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		now := time.Now()
		add("late", now.Add(-2*time.Hour), 1)
		add("before1970", time.UnixMilli(-5), 2)
		add("fresh", now, 3)
		add("fresh", now.Add(-time.Hour), 4)
		add("ahead", now.Add(10*time.Minute), 5)
		add("beyond", now.Add(10*time.Minute+time.Second), 8)
		add("catching up", now.Add(-time.Hour), 6)
		add("catching up", now.Add(-time.Minute), 7)
		r.wants(t, "ahead=5", "catching up=7", "fresh=3")
	})
}

// What an input still brings after it is gone from the configuration does not bring it back.
func TestEndedInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		send(t, r.Input("scrape", "job", Settings{}), 1, "x")
		r.Keep("scrape", nil)
		send(t, r.Ended("scrape", "job"), 2, "x", "y")
		r.wants(t, "x=2", "y=2")
		send(t, r.Ended("scrape", "never"), 2, "z")
		time.Sleep(lapse + sweepEvery + time.Second)
		send(t, r.Input("probe", "other", Settings{}), 1, "tick")
		if all := r.Status(); len(all) != 1 || all[0].Name != "other" {
			t.Errorf("%+v", all)
		}
	})
}

// One sample with a time far ahead, or a clock that was ahead for a while, does not hide the samples that come after it.
func TestSamplesFromTheFutureHideNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		before bool // a sample at the present time comes first
		at     int64
	}{
		{"a day ahead", false, time.Now().Add(24 * time.Hour).UnixMilli()},
		{"a day ahead, after a good one", true, time.Now().Add(24 * time.Hour).UnixMilli()},
		{"the greatest time", false, math.MaxInt64},
		{"the greatest time, after a good one", true, math.MaxInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
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
			in := p.Input("receiver", "remote_write", Settings{})
			add := func(at int64, v float64, strict bool) {
				t.Helper()
				app := in.AppenderV2(t.Context())
				for _, name := range []string{"float", "native"} {
					var fh *histogram.FloatHistogram
					if name == "native" {
						fh = &histogram.FloatHistogram{Count: v, ZeroCount: v}
					}
					if _, err := app.Append(0, labels.FromStrings(model.MetricNameLabel, name), 0, at, v, nil, fh, storage.AOptions{RejectOutOfOrder: strict}); err != nil {
						t.Fatal(err)
					}
				}
				if err := app.Commit(); err != nil {
					t.Fatal(err)
				}
			}
			want := func(v float64, n int) {
				t.Helper()
				all := p.Newest(nil)
				if len(all) != n {
					t.Fatalf("%d series, want %d: %v", len(all), n, all)
				}
				for _, s := range all {
					if s.FH == nil && s.V != v || s.FH != nil && s.FH.Count != v {
						t.Errorf("%s is %v, %v; want %v", s.Labels, s.V, s.FH, v)
					}
				}
			}
			now := time.Now().UnixMilli()
			if c.before {
				add(now-10, 7, false)
			}
			add(c.at, 99, false)
			if c.before {
				want(7, 2)
			} else {
				want(0, 0)
			}
			add(now-5, 1, true) // also where late samples are refused, as stale markers are
			want(1, 2)
			add(c.at, 98, false)
			want(1, 2)
			add(now, 2, false)
			want(2, 2)
		})
	}
}
