package snmp

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/internal/tools/tier"
	"hwsagent/probes"
)

// TestEngineIDChangesInAWalk: a device that restarts with a new engine ID in the middle of a walk loses no series of the
// round, and no series comes twice.
func TestEngineIDChangesInAWalk(t *testing.T) {
	d := startSnmpd(t)
	for _, auth := range []Auth{v2(), plain, signed, sealed, strong} {
		t.Run(auth.Username, func(t *testing.T) {
			p := newProbe(t, Config{Target: d.target("udp"), Auth: auth, Modules: []string{"system", "if_mib"}, PacketTimeout: model.Duration(time.Second), MaxRepetitions: 2})
			whole, err := collect(t, p)
			if err != nil {
				t.Fatal(err)
			}
			for i, id := range []string{"0x80001f8803626f6172642d3034", "0x80001f8803626f6172642d3035"} {
				n := 0
				p.OnRead(func(string) {
					if n++; n == 3+20*i {
						d.stop(t)
						d.start(t, id)
					}
				})
				r, err := collect(t, p)
				if err != nil {
					t.Error(err)
				}
				if n < 3+20*i {
					t.Fatalf("the walk has %d variables: the device did not restart", n)
				}
				have := map[string]int{}
				for _, s := range r.Samples() {
					have[seriesOf(s)]++
				}
				for _, s := range whole.Samples() {
					if i := slices.Index(s.Labels, "ifIndex"); i >= 0 && s.Labels[i+1] != "1" {
						continue // an interface of this machine that may come and go
					}
					if name := seriesOf(s); have[name] != 1 {
						t.Errorf("%s comes %d times", name, have[name])
					}
				}
			}
		})
	}
}

// seriesOf is a sample's name and labels.
func seriesOf(s probes.Sample) string {
	name := s.Name
	if name == "" {
		name = s.Family.Name
	}
	for _, l := range s.Labels {
		name += " " + l
	}
	return name
}

// TestReloadInAWalk: a probe that is ended in the middle of a walk, at any variable, returns at once and leaves no socket
// open.
func TestReloadInAWalk(t *testing.T) {
	d := startSnmpd(t)
	for _, network := range []string{"udp", "tcp"} {
		for _, auth := range []Auth{v2(), sealed} {
			before := sockets(t)
			for at := 1; ; at += 7 {
				p := newProbe(t, Config{Target: d.target(network), Auth: auth, Modules: []string{"system", "if_mib"}, PacketTimeout: model.Duration(5 * time.Second), MaxRepetitions: 5})
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				n := 0
				p.OnRead(func(string) {
					if n++; n == at {
						cancel()
					}
				})
				began := time.Now()
				err := p.Collect(ctx, probes.NewRound(0))
				cancel()
				if took := time.Since(began); took > tier.Within(4*time.Second) || n < at && err != nil {
					t.Errorf("%s, ended at variable %d: %v after %v", network, at, err, took)
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
				if n < at {
					break // the whole walk
				}
			}
			if after := sockets(t); after > before {
				t.Errorf("%s: %d files are open, %d before", network, after, before)
			}
		}
	}
}

// sockets returns how many files the process has open; 0 where the system does not say.
func sockets(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(files)
}
