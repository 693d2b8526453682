package devices

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hwsagent/probes"
)

// A device that is down for a day is asked about every round at first, and then every five
// minutes; an answer makes it as good as new.
func TestSilenceGrows(t *testing.T) {
	var c Contact
	now := time.Unix(1_800_000_000, 0)
	down := errors.New("no answer")
	asked := map[int]int{} // by hour
	for minute := range 24 * 60 {
		at := now.Add(time.Duration(minute) * time.Minute)
		if err := c.Wait(at); err != nil {
			if !errors.Is(err, down) || !strings.Contains(err.Error(), "since 2027-01-15 08:00:00") {
				t.Fatal(err)
			}
			continue
		}
		if got, want := c.Impatient(), minute >= patientRounds; got != want {
			t.Errorf("minute %d: impatient = %t", minute, got)
		}
		c.Failed(at, NoAnswer, down)
		asked[minute/60]++
	}
	if asked[0] < 15 || asked[0] > 30 {
		t.Errorf("asked %d times in the first hour", asked[0])
	}
	for hour := 1; hour < 24; hour++ {
		if asked[hour] != 12 {
			t.Errorf("asked %d times in hour %d", asked[hour], hour)
		}
	}
	c.Answered(now)
	if c.Wait(now) != nil || c.Impatient() {
		t.Errorf("%+v after an answer", c)
	}
}

// The series of a device say whether it was reached, since when, and why not; the time is that of the
// change, whatever the reason becomes.
func TestContactIsReported(t *testing.T) {
	var c Contact
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	down := errors.New("no answer")
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"not asked yet", func() {}, ""},
		{"the first answer", func() { c.Answered(at(10)) }, "up 1 since 10"},
		{"the next", func() { c.Answered(at(20)) }, "up 1 since 10"},
		{"silence", func() { c.Failed(at(30), NoAnswer, down) }, "up 0 since 30 timeout"},
		{"a refused login", func() { c.Failed(at(40), Login, down) }, "up 0 since 30 login"},
		{"a missing file", func() { c.Unasked(at(50), Secret) }, "up 0 since 30 secret"},
		{"an answer", func() { c.Answered(at(60)) }, "up 1 since 60"},
		{"a missing file after an answer", func() { c.Unasked(at(70), Secret) }, "up 0 since 70 secret"},
	} {
		step.do()
		r := probes.NewRound(0)
		c.Report(r)
		got := ""
		for _, s := range r.Samples() {
			switch s.Family {
			case &deviceUp:
				got += fmt.Sprintf("up %g", s.Value)
			case &deviceSince:
				got += fmt.Sprintf(" since %g", s.Value)
			case &deviceDown:
				got += " " + s.Labels[slices.Index(s.Labels, "reason")+1]
			}
		}
		if got != step.want {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
	}
	if c.Wait(at(71)) != nil {
		t.Error("a question that was not asked puts off the next")
	}
}
