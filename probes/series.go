package probes

import (
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/storage"
)

// tracked is one series of a probe: what its raw name and labels became, and when it
// was last seen.
type tracked struct {
	ref    storage.SeriesRef
	labels labels.Labels // final; empty when metric_relabel_configs removed it
	hash   uint64        // of labels
	round  uint64        // the last round that had it; set by mark
	// timed says that the sample carried a timestamp of its own: such a series is not
	// marked stale, as in a scrape.
	timed bool
	err   error // why the series is invalid; its samples are refused
}

// tracker maps a probe's raw samples to final series and knows which series have
// disappeared. It belongs to one probe's loop.
type tracker struct {
	target  labels.Labels
	relabel []*relabel.Config

	known map[string]*tracked // by the raw name and labels
	seen  map[uint64]uint64   // hash of final labels -> the round it was last appended in

	// marked is how many of known round current had: when it had all, none is gone.
	current uint64
	marked  int

	key []byte // of the series that find returned last
	lb  *labels.Builder
}

func newTracker(target labels.Labels, rc []*relabel.Config) *tracker {
	return &tracker{
		target: target, relabel: rc,
		known: make(map[string]*tracked),
		seen:  make(map[uint64]uint64),
		lb:    labels.NewBuilder(labels.EmptyLabels()),
	}
}

// find returns the series of a sample, making it at the first sight of it.
func (t *tracker) find(s *Sample) *tracked {
	name := s.Name
	if name == "" {
		name = s.Family.Name
	}
	t.key = append(t.key[:0], name...)
	for _, l := range s.Labels {
		t.key = append(t.key, 0xff) // no byte of valid UTF-8
		t.key = append(t.key, l...)
	}
	if tr, ok := t.known[string(t.key)]; ok {
		return tr
	}
	tr := t.resolve(name, s.Labels)
	t.known[string(t.key)] = tr
	return tr
}

// resolve makes the final labels: the sample's own, the target's over them, relabelled.
func (t *tracker) resolve(name string, raw []string) *tracked {
	if len(raw)%2 != 0 {
		return &tracked{err: fmt.Errorf("sample of %q has %d label strings, want name and value pairs", name, len(raw))}
	}
	if !model.UTF8Validation.IsValidMetricName(name) {
		return &tracked{err: fmt.Errorf("%q is not a metric name", name)}
	}
	t.lb.Reset(labels.EmptyLabels())
	for i := 0; i < len(raw); i += 2 {
		if !model.UTF8Validation.IsValidLabelName(raw[i]) || raw[i] == model.MetricNameLabel {
			return &tracked{err: fmt.Errorf("sample of %q: %q is not a label name", name, raw[i])}
		}
		if !model.LabelValue(raw[i+1]).IsValid() {
			return &tracked{err: fmt.Errorf("sample of %q: value of label %q is not UTF-8: %q", name, raw[i], raw[i+1])}
		}
		if t.lb.Get(raw[i]) != "" {
			return &tracked{err: fmt.Errorf("sample of %q has label %q twice", name, raw[i])}
		}
		t.lb.Set(raw[i], raw[i+1])
	}
	t.target.Range(func(l labels.Label) {
		if own := t.lb.Get(l.Name); own != "" && own != l.Value {
			exported := model.ExportedLabelPrefix + l.Name
			for t.lb.Get(exported) != "" {
				exported = model.ExportedLabelPrefix + exported
			}
			t.lb.Set(exported, own)
		}
		t.lb.Set(l.Name, l.Value)
	})
	t.lb.Set(model.MetricNameLabel, name)
	if !relabel.ProcessBuilder(t.lb, t.relabel...) {
		return &tracked{}
	}
	ls := t.lb.Labels()
	if ls.Get(model.MetricNameLabel) == "" {
		return &tracked{err: fmt.Errorf("metric_relabel_configs leave %q without a name", name)}
	}
	return &tracked{labels: ls, hash: ls.Hash()}
}

// first reports whether the series' labels are met for the first time in this round;
// a second sample of one series in one round would contradict the first.
func (t *tracker) first(tr *tracked, round uint64) bool {
	if t.seen[tr.hash] == round {
		return false
	}
	t.seen[tr.hash] = round
	return true
}

// forget forgets the series that find returned last, and that no round has had.
func (t *tracker) forget(tr *tracked) {
	delete(t.known, string(t.key))
	delete(t.seen, tr.hash)
}

// mark notes that the round has the series.
func (t *tracker) mark(tr *tracked, round uint64) {
	if t.current != round {
		t.current, t.marked = round, 0
	}
	if tr.round != round {
		tr.round = round
		t.marked++
	}
}

// gone calls stale for each series that the rounds before had and this one has not,
// and forgets it.
func (t *tracker) gone(round uint64, stale func(*tracked)) {
	if t.current == round && t.marked == len(t.known) {
		return
	}
	for key, tr := range t.known {
		if tr.round == round {
			continue
		}
		delete(t.known, key)
		if tr.labels.IsEmpty() {
			continue
		}
		if t.seen[tr.hash] == round {
			continue // another raw sample goes on with the same final labels
		}
		delete(t.seen, tr.hash)
		if tr.round != 0 && !tr.timed {
			stale(tr)
		}
	}
}

// adopt takes over the series of a tracker that this one replaces, so that those
// which do not come again are marked stale after this one's first round.
func (t *tracker) adopt(old *tracker) {
	for key, tr := range old.known {
		if tr.round != 0 && !tr.labels.IsEmpty() {
			// A key that no sample can have: the raw names may now lead elsewhere.
			t.known["\xff"+key] = &tracked{ref: tr.ref, labels: tr.labels, hash: tr.hash, round: adopted, timed: tr.timed}
		}
	}
}

// adopted is a round that never comes: it differs from every real one and from 0,
// which means "never appended".
const adopted = ^uint64(0)
