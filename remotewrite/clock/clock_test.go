package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSlipped(t *testing.T) {
	for _, tc := range []struct {
		name            string
		wall, monotonic time.Duration
		want            bool
	}{
		{"steady", 10 * time.Second, 10 * time.Second, false},
		{"slewed", 10*time.Second + 500*time.Millisecond, 10 * time.Second, false},
		{"stepped", 10*time.Second + time.Hour, 10 * time.Second, true},
		{"stepped back", -2 * time.Hour, 10 * time.Second, true},
		{"suspended", 8 * time.Hour, 10 * time.Second, true},
	} {
		if got := slipped(tc.wall, tc.monotonic); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// Which samples are sent, wait and are dropped, by what the target tells and what the configuration says.
func TestLimits(t *testing.T) {
	const future, age = 10 * time.Minute, time.Hour
	for _, tc := range []struct {
		name        string
		rules       Rules
		skew        time.Duration // of the target's clock
		silent      bool          // it does not tell its time
		synced      bool
		at          time.Duration // the sample's time, to this host's clock
		sent, waits bool
	}{
		{name: "now", rules: Rules{age, future, true}, sent: true},
		{name: "too old", rules: Rules{age, future, true}, at: -2 * age},
		{name: "old, no limit", rules: Rules{0, future, true}, at: -2 * age, sent: true},
		{name: "old by the target's clock only", rules: Rules{age, future, true}, skew: 2 * age, at: -time.Minute},
		{name: "old by the host's clock, a silent target", rules: Rules{age, future, true}, silent: true, at: -2 * age},
		{name: "ahead, a silent target", rules: Rules{age, future, true}, silent: true, at: 2 * future, sent: true},
		{name: "ahead of both", rules: Rules{age, future, true}, at: 2 * future},
		{name: "ahead, no limit", rules: Rules{age, 0, true}, at: 2 * future, sent: true},
		{name: "ahead of the target only", rules: Rules{age, future, true}, skew: -2 * future, waits: true},
		{name: "ahead of the target only, dropped", rules: Rules{age, future, false}, skew: -2 * future},
		{name: "two days off, synchronised", rules: Rules{age, future, true}, skew: -48 * time.Hour, synced: true, sent: true},
		{name: "two days off, not synchronised", rules: Rules{age, future, true}, skew: -48 * time.Hour, waits: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c Clock
				if tc.silent {
					c.DoesNotTell()
				} else {
					c.Told(time.Now().Add(tc.skew), tc.synced)
				}
				l, at := tc.rules.Limits(c.Reading()), time.Now().Add(tc.at).UnixMilli()
				if l.Sends(at) != tc.sent || l.Waits(at) != tc.waits {
					t.Errorf("sent %t, waits %t; want %t, %t", l.Sends(at), l.Waits(at), tc.sent, tc.waits)
				}
			})
		})
	}
}

// A target that fails at empty writes is asked by data each fourth time after half a minute, until it tells its time.
func TestAskByEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		byData := func() (n int) {
			for range 8 {
				c.AskedInVain()
				if !c.AskByEmpty() {
					n++
				}
			}
			return n
		}
		if n := byData(); n != 0 {
			t.Errorf("%d of the first questions are data", n)
		}
		time.Sleep(askFor)
		if n := byData(); n != 2 {
			t.Errorf("%d of 8 questions after %s are data, want 2", n, askFor)
		}
		c.Told(time.Now(), false)
		if n := byData(); n != 0 {
			t.Errorf("%d questions are data after the target told its time", n)
		}
	})
}

// What a target said is fresh for half a minute, and goes on meanwhile; an answer without a time does not change it.
func TestReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		if _, known := c.Skew(); known || c.Known() {
			t.Error("the zero clock is known")
		}
		c.SaidNothing()
		if _, known := c.Skew(); known || !c.Known() || c.Reading().Tells() {
			t.Error("an answer without a time tells the time")
		}
		c.Told(time.Now().Add(-time.Hour), false)
		c.SaidNothing()
		time.Sleep(freshFor - time.Second)
		if skew, known := c.Skew(); !known || skew != time.Hour || !c.Reading().Fresh() {
			t.Errorf("skew %s, known %t, fresh %t", skew, known, c.Reading().Fresh())
		}
		time.Sleep(2 * time.Second)
		if c.Reading().Fresh() {
			t.Error("fresh after more than half a minute")
		}
	})
}

func TestWords(t *testing.T) {
	for skew, want := range map[time.Duration]string{
		11 * time.Minute:             "the receiver's clock is 11m behind this host's",
		-time.Hour:                   "the receiver's clock is 1h ahead of this host's",
		2*time.Hour + 5*time.Minute:  "the receiver's clock is 2h5m behind this host's",
		90*time.Second + time.Second: "the receiver's clock is 1m31s behind this host's",
		0:                            "the receiver's clock is 0s behind this host's",
	} {
		if got := Words(skew); got != want {
			t.Errorf("%s: %q, want %q", skew, got, want)
		}
	}
}
