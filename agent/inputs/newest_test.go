package inputs

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
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
		add("ahead", now.Add(time.Hour), 5)
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
