package tenant

import (
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"go.uber.org/goleak"

	"hwsagent/remotewrite/config"
	"hwsagent/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// empty is a log without commits.
type empty struct{ Source }

func (empty) Head() wal.Mark { return wal.Mark{} }

// TestDiscoveryForgetsSeriesThatEnd: the discovery keeps no series that the log does not use any more, and leaves alone one that has its slot
// by then.
func TestDiscoveryForgetsSeriesThatEnd(t *testing.T) {
	c := config.DefaultConfig()
	c.Target.Tenant = &config.TenantConfig{Label: "tenant"}
	d := NewDiscovery(Options{Config: c, Source: empty{}, Registry: NewRegistry(&c, nil, func(string) error { return nil })})
	ended := wal.NewSeries(1, labels.FromStrings("__name__", "ended"), nil)
	next := wal.NewSeries(1, labels.FromStrings("__name__", "next"), nil)
	for range 2 {
		d.of(ended)
		if err := d.discoverAll(&wal.Entry{Ended: []*wal.Series{ended, wal.NewSeries(9, labels.EmptyLabels(), nil)}}, wal.Mark{}); err != nil {
			t.Fatal(err)
		}
		if d.seen[1].from != nil {
			t.Error("the discovery keeps a series that has ended")
		}
	}
	d.of(next)
	d.end([]*wal.Series{ended})
	if d.seen[1].from != next {
		t.Error("the end of a series took another one out of its slot")
	}
}
