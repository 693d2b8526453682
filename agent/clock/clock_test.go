package clock

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hwsagent/agent/status"
)

const year = 365 * 24 * time.Hour

func TestClockChange(t *testing.T) {
	base := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name             string
		from             time.Time
		wall, mono, boot time.Duration // that passed
		step, suspended  time.Duration
	}{
		{"nothing", base, time.Second, time.Second, time.Second, 0, 0},
		{"busy machine", base, 30 * time.Second, 30 * time.Second, 30 * time.Second, 0, 0},
		{"slewed by a tenth", base, 1100 * time.Millisecond, time.Second, time.Second, 0, 0},
		{"slewed by a tenth, busy", base, 27 * time.Second, 30 * time.Second, 30 * time.Second, 0, 0},
		{"just no step", base, 1300 * time.Millisecond, time.Second, time.Second, 0, 0},
		{"just a step", base, 1301 * time.Millisecond, time.Second, time.Second, 301 * time.Millisecond, 0},
		{"just a step back", base, 699 * time.Millisecond, time.Second, time.Second, -301 * time.Millisecond, 0},
		{"leap second", base, 0, time.Second, time.Second, -time.Second, 0},
		{"two hours back", base, time.Second - 2*time.Hour, time.Second, time.Second, -2 * time.Hour, 0},
		{"a year ahead", base, time.Second + year, time.Second, time.Second, year, 0},
		{"from 1970 to now", time.Unix(9, 0), time.Second + 56*year, time.Second, time.Second, 56 * year, 0},
		{"from 2106 to now", time.Unix(1<<32+9, 0), time.Second - 80*year, time.Second, time.Second, -80 * year, 0},
		{"suspended", base, time.Second + 8*time.Hour, time.Second, time.Second + 8*time.Hour, 0, 8 * time.Hour},
		{"suspended, board counts seconds", base, 9*time.Hour + 1200*time.Millisecond, time.Second, time.Second + 9*time.Hour, 0, 9 * time.Hour},
		{"suspended, and set", base, time.Second + 6*time.Hour, time.Second, time.Second + 8*time.Hour, -2 * time.Hour, 8 * time.Hour},
	} {
		before := reading{wall: tc.from, mono: time.Hour, boot: 2 * time.Hour}
		now := reading{wall: tc.from.Add(tc.wall), mono: time.Hour + tc.mono, boot: 2*time.Hour + tc.boot}
		if step, suspended := change(before, now); step != tc.step || suspended != tc.suspended {
			t.Errorf("%s: step %s, suspended %s; want %s, %s", tc.name, step, suspended, tc.step, tc.suspended)
		}
	}
}

// Each step is counted and logged once, and told by the clock as it is set afterwards.
func TestClockTellsOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		c := New(slog.New(slog.NewTextHandler(&said, nil)))
		began := time.Now()
		var off, slept time.Duration
		missed := false
		c.read = func() (reading, bool) {
			mono := time.Since(began)
			return reading{wall: began.Add(mono + slept + off), mono: mono, boot: mono + slept}, !missed
		}
		live := func(d time.Duration) {
			for range d / time.Second {
				c.look()
				time.Sleep(time.Second)
			}
		}
		live(time.Minute)
		off = -2 * time.Hour
		live(time.Minute)
		missed = true
		off += year
		live(10 * time.Second)
		missed = false
		live(time.Minute)
		slept = 8 * time.Hour
		live(time.Minute)

		if f, b := testutil.ToFloat64(c.steps.WithLabelValues(forward)), testutil.ToFloat64(c.steps.WithLabelValues(back)); f != 1 || b != 1 {
			t.Errorf("%v steps forward, %v back; want one of each", f, b)
		}
		now := time.Now()
		want := status.ClockStatus{
			Steps: 2, LastStepAt: now.Add(-2 * time.Minute), LastStepSeconds: year.Seconds(),
			Suspends: 1, LastSuspendAt: now.Add(-time.Minute), LastSuspendSeconds: (8 * time.Hour).Seconds(),
		}
		if diff := cmp.Diff(want, c.Status(now)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, part := range []string{"by=-2h0m0s", "by=8760h0m0s", "for=8h0m0s"} {
			if n := strings.Count(said.String(), part); n != 1 {
				t.Errorf("%q was logged %d times:\n%s", part, n, said.String())
			}
		}
		if n := strings.Count(said.String(), "\n"); n != 3 {
			t.Errorf("%d lines logged, want 3:\n%s", n, said.String())
		}
	})
}

// The host's own clocks are steady unless they are set.
func TestReadClocks(t *testing.T) {
	read := readClocks(time.Now())
	before, ok := read()
	for range 100 {
		now, again := read()
		if !ok || !again {
			t.Skip("the machine is too busy for a reading")
		}
		if step, suspended := change(before, now); step != 0 || suspended != 0 {
			t.Errorf("step %s, suspended %s", step, suspended)
		}
		before = now
	}
}
