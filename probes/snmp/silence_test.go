package snmp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes"
	"hwsagent/probes/devices"
)

// A dead device costs its retries twice, then one packet, then none until it is time; it is read
// again in the first round in which it is asked and answers.
func TestDeadDeviceCostsLess(t *testing.T) {
	a := newFakeAgent(t)
	a.misbehave(func(*gosnmp.SnmpPacket) (*gosnmp.SnmpPacket, bool) { return nil, true })
	c := a.config("system")
	c.Retries = new(2)
	p := newProbe(t, c)
	for round, want := range []int{3, 3, 1} {
		before := a.faultsSoFar()
		if _, err := collect(t, p); err == nil {
			t.Fatal("no error")
		}
		if got := a.faultsSoFar() - before; got != want {
			t.Errorf("round %d: %d packets, want %d", round, got, want)
		}
	}
	p.contact.Failed(time.Now().Add(time.Hour), devices.NoAnswer, errors.New("no answer")) // as if time had passed
	a.misbehave(nil)
	r, err := collectAll(t, p)
	if err == nil || !strings.Contains(err.Error(), "not asked before") {
		t.Errorf("%v", err)
	}
	if got := lines(r); got[`hwsagent_device_up{}`] != 0 || got[`hwsagent_device_down{reason="timeout"}`] != 1 {
		t.Errorf("%v", got)
	}
	p.contact.Ask()
	if _, err := collect(t, p); err != nil {
		t.Error(err)
	}
	if p.session.retries != 2 {
		t.Errorf("%d retries after it came back", p.session.retries)
	}
}

// A shutdown of the agent during a request does not count as silence of the device.
func TestCanceledIsNoSilence(t *testing.T) {
	p := newProbe(t, newFakeAgent(t).config("system"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := probes.NewRound(0)
	if err := p.Collect(ctx, r); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if p.contact.Wait(time.Now()) != nil || len(r.Samples()) != 0 {
		t.Errorf("%+v", p.contact)
	}
}
