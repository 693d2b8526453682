package snmp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes"
)

// A device that is down for a day is asked about every round at first, and then every five
// minutes; an answer makes it as good as new.
func TestSilenceGrows(t *testing.T) {
	var s silence
	now := time.Unix(1_800_000_000, 0)
	down := errors.New("no answer")
	asked := map[int]int{} // by hour
	for minute := range 24 * 60 {
		at := now.Add(time.Duration(minute) * time.Minute)
		if err := s.wait(at); err != nil {
			if !errors.Is(err, down) || !strings.Contains(err.Error(), "since 2027-01-15 08:00:00") {
				t.Fatal(err)
			}
			continue
		}
		if got, want := s.impatient(), minute >= patientRounds; got != want {
			t.Errorf("minute %d: impatient = %t", minute, got)
		}
		s.heard(at, down)
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
	s.heard(now, nil)
	if s != (silence{}) || s.wait(now) != nil || s.impatient() {
		t.Errorf("%+v after an answer", s)
	}
}

// A dead device costs its retries twice, then one packet, then none until it is time; it is read
// again in the first round in which it is asked and answers.
func TestDeadDeviceCostsLess(t *testing.T) {
	a := newFakeAgent(t)
	a.misbehave(func(*gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) { return nil, true })
	c := a.config("system")
	c.Retries = new(2)
	p := newProbe(t, c)
	for round, want := range []int{3, 3, 1, 0} {
		before := a.faultsSoFar()
		if round == 3 { // as if it had been silent for an hour
			p.silence.since = p.silence.since.Add(-time.Hour)
			p.silence.heard(time.Now(), p.silence.reason)
		}
		if _, err := collect(t, p); err == nil {
			t.Fatal("no error")
		}
		if got := a.faultsSoFar() - before; got != want {
			t.Errorf("round %d: %d packets, want %d", round, got, want)
		}
	}
	a.misbehave(nil)
	if _, err := collect(t, p); err == nil || !strings.Contains(err.Error(), "not asked before") {
		t.Errorf("%v", err)
	}
	p.silence.next = time.Now()
	if _, err := collect(t, p); err != nil {
		t.Error(err)
	}
	if p.session.retries != 2 {
		t.Errorf("%d retries after it came back", p.session.retries)
	}
}

// The end of the agent amid a question is no silence of the device.
func TestCanceledIsNoSilence(t *testing.T) {
	p := newProbe(t, newFakeAgent(t).config("system"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Collect(ctx, probes.NewRound(0)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if p.silence.rounds != 0 {
		t.Errorf("%+v", p.silence)
	}
}
