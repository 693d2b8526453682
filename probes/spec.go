package probes

import (
	"hash/fnv"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/inputs/panics"
)

// Spec says how one probe is run.
type Spec struct {
	Name string // unique among the probes
	Type string // for people: host, snmp, …
	Host string // the machine that runs it

	// Identity is equal for two specs exactly when one may go on for the other after
	// a reload: the same configuration, so the running probe is kept.
	Identity string

	// Probe is what runs. The runner closes it when it is removed, if it is a Closer.
	Probe Probe

	// Out takes what the probe reads; nil stands for the runner's own.
	Out storage.AppendableV2

	// Guard contains the panics of the probe's work; nil stands for one of its own.
	Guard *panics.Guard

	// Follows names the probe, of the same interval, that this one follows each time: what both bring
	// becomes durable with one write of the disk. "": none.
	Follows string

	Interval time.Duration // between the starts of two rounds, > 0
	Timeout  time.Duration // of one round, 0 < Timeout <= Interval

	// Labels are added to every sample: job, instance and the user's. A label of that
	// name on the sample itself is kept as exported_<name>, as a scrape would.
	Labels  labels.Labels
	Bare    bool              // only up and scrape_duration_seconds get Labels: the samples have all of theirs
	Relabel []*relabel.Config // metric_relabel_configs, applied last

	// Translate gives a sample another name and other labels before anything else sees it, in the sample's own memory; nil: it stays as it is.
	Translate func(*Sample)

	MaxSamples int // of one round; 0 is no limit. More than that fails the round.
}

// firstRun is when the probe first runs after now: at the phase, within the interval
// since the epoch, that a hash of its name and of the host picks. Probes thus spread
// evenly, so do the hosts that all have the same probe, and a restart keeps the phase. One
// that follows another runs followsAfter later than that.
func (s *Spec) firstRun(now time.Time) time.Time {
	name, after := s.Name, time.Duration(0)
	if s.Follows != "" {
		name, after = s.Follows, followsAfter
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	h.Write([]byte{0xff}) // no name of a probe or host has it
	h.Write([]byte(s.Host))
	// The upper bits of FNV of short names hardly differ: mix them (the finaliser of MurmurHash3).
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	phase := (time.Duration(x%uint64(s.Interval)) + after) % s.Interval
	wait := (phase - time.Duration(now.UnixNano())%s.Interval) % s.Interval
	if wait < 0 {
		wait += s.Interval
	}
	return now.Add(wait)
}

// followsAfter is how long after the start of a round the one begins that follows it: long enough for a
// probe of this machine, and short beside the second after which the log is synced by default.
const followsAfter = 100 * time.Millisecond

// sampleLabels are what each sample gets.
func (s *Spec) sampleLabels() labels.Labels {
	if s.Bare {
		return labels.EmptyLabels()
	}
	return s.Labels
}
