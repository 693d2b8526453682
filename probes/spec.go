package probes

import (
	"hash/fnv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/panics"
)

// Spec configures one probe.
type Spec struct {
	Name string // unique among the probes
	Type string // for people: host, snmp, …
	Host string // the machine that runs it

	// Identity is equal for two specs exactly if one may replace the other at a reload: the configuration is the same,
	// so the running probe is kept.
	Identity string

	// Probe is the probe to run. The runner closes it when it is removed, if it is a Closer.
	Probe Probe

	// Out receives the probe's samples; nil means the runner's own. The runner appends to a series that Out knows by the
	// reference alone, and again with labels if the error is [storage.ErrNotFound].
	Out storage.AppendableV2

	// Guard contains the panics of the probe's work; nil: the runner makes one.
	Guard *panics.Guard

	Interval time.Duration // between the starts of two rounds, > 0
	Timeout  time.Duration // of one round, > 0. Rounds that would start while another one runs are skipped and counted.

	// Labels are added to every sample: job, instance and the user's. A sample's own label with one of these names is
	// kept as exported_<name>, as in a scrape.
	Labels  labels.Labels
	Bare    bool              // only up and scrape_duration_seconds get Labels; the samples have complete labels
	Relabel []*relabel.Config // metric_relabel_configs, applied last

	// Translate changes the name and labels of a sample before anything else sees it, in the sample's own memory; nil:
	// no change.
	Translate func(*Sample)

	MaxSamples int // of one round; 0 is no limit. More than that fails the round.
}

// firstRun returns when the probe first runs after now: at a phase within the interval since the epoch, chosen by a hash of its name
// and of the host. This spreads probes evenly, also hosts with the same probe, and a restart keeps the phase.
func (s *Spec) firstRun(now time.Time) time.Time {
	h := fnv.New64a()
	h.Write([]byte(s.Name))
	h.Write([]byte{0xff}) // not in any name of a probe or host
	h.Write([]byte(s.Host))
	// The upper bits of FNV hardly differ for short names, so mix them (the finaliser of MurmurHash3).
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	phase := time.Duration(x % uint64(s.Interval))
	wait := (phase - time.Duration(now.UnixNano())%s.Interval) % s.Interval
	if wait < 0 {
		wait += s.Interval
	}
	return now.Add(wait)
}

// sampleLabels returns the labels that each sample gets.
func (s *Spec) sampleLabels() labels.Labels {
	if s.Bare {
		return labels.EmptyLabels()
	}
	return s.Labels
}
