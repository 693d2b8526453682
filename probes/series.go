package probes

import (
	"fmt"
	"hash/maphash"
	"math"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/refs"
)

// tracked is one series of a probe: its raw name and labels by two digests, what they became, and when it
// was last seen. There is one for each series of each device, so it is small.
type tracked struct {
	ref    storage.SeriesRef
	labels labels.Labels // final; empty when metric_relabel_configs removed it
	digest uint64        // of the raw name and labels, as is second; see tracker.find
	next   *tracked      // in tracker.known
	link   *tracked      // in tracker.final
	second uint32
	round  uint32 // the last round that had it; set by mark
	seen   uint32 // the last round in which it was the first one with its labels; set by first
	twin   bool   // another one may have the same labels
	bad    bool   // invalid: tracker.errs says why; its samples are refused
	// timed says that the sample carried a timestamp of its own: such a series is not
	// marked stale, as in a scrape.
	timed bool
}

// tracker maps a probe's raw samples to final series and knows which series have
// disappeared. It belongs to one probe's loop.
type tracker struct {
	target  labels.Labels
	relabel []*relabel.Config

	known *refs.Chains[tracked] // all, by digest
	final *refs.Chains[tracked] // those with labels, by these
	errs  map[*tracked]error    // of those that are bad

	// marked is how many of known round current had: when it had all, none is gone.
	current uint32
	marked  int

	firstSeed, secondSeed maphash.Seed // of the digests

	share func(labels.Labels) labels.Labels // returns those that are in memory already, where there are

	key []byte // scratch
	lb  *labels.Builder
}

func newTracker(target labels.Labels, rc []*relabel.Config) *tracker {
	return &tracker{
		target: target, relabel: rc,
		known:     refs.NewChains(func(tr *tracked) uint64 { return tr.digest }, func(tr *tracked) **tracked { return &tr.next }),
		final:     refs.NewChains(func(tr *tracked) uint64 { return tr.labels.Hash() }, func(tr *tracked) **tracked { return &tr.link }),
		errs:      make(map[*tracked]error),
		firstSeed: maphash.MakeSeed(), secondSeed: maphash.MakeSeed(),
		share: func(ls labels.Labels) labels.Labels { return ls },
		lb:    labels.NewBuilder(labels.EmptyLabels()),
	}
}

// find returns the series of a sample, making it at the first sight of it. Raw names and labels are told apart by
// 96 bits of digests with keys of this process, not by the texts, which would take more memory than all else: that
// two of one probe's have both digests alike is as good as impossible.
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
	digest, second := maphash.Bytes(t.firstSeed, t.key), uint32(maphash.Bytes(t.secondSeed, t.key)) // #nosec G115 -- half of it
	tr := t.known.Find(digest, func(tr *tracked) bool {
		return tr.digest == digest && tr.second == second && tr.round != adopted
	})
	if tr != nil {
		return tr
	}
	tr, err := t.resolve(name, s.Labels)
	tr.digest, tr.second = digest, second
	if err != nil {
		tr.bad, t.errs[tr] = true, err
	}
	t.add(tr)
	return tr
}

// fault is why a series is invalid, nil if it is not.
func (t *tracker) fault(tr *tracked) error {
	if !tr.bad {
		return nil
	}
	return t.errs[tr]
}

// add adds a series to the tables.
func (t *tracker) add(tr *tracked) {
	t.known.Add(tr)
	if tr.labels.IsEmpty() {
		return
	}
	if tr.round != adopted {
		hash := tr.labels.Hash()
		same := func(o *tracked) bool { return o.round != adopted && labels.Equal(o.labels, tr.labels) }
		if other := t.final.Find(hash, same); other != nil {
			tr.twin, other.twin = true, true
		}
	}
	t.final.Add(tr)
}

// resolve makes the final labels: the sample's own, the target's over them, relabelled. The error
// says why it is invalid.
func (t *tracker) resolve(name string, raw []string) (*tracked, error) {
	if len(raw)%2 != 0 {
		return &tracked{}, fmt.Errorf("sample of %q has %d label strings, want name and value pairs", name, len(raw))
	}
	if !model.UTF8Validation.IsValidMetricName(name) {
		return &tracked{}, fmt.Errorf("%q is not a metric name", name)
	}
	t.lb.Reset(labels.EmptyLabels())
	for i := 0; i < len(raw); i += 2 {
		if !model.UTF8Validation.IsValidLabelName(raw[i]) || raw[i] == model.MetricNameLabel {
			return &tracked{}, fmt.Errorf("sample of %q: %q is not a label name", name, raw[i])
		}
		if !model.LabelValue(raw[i+1]).IsValid() {
			return &tracked{}, fmt.Errorf("sample of %q: value of label %q is not UTF-8: %q", name, raw[i], raw[i+1])
		}
		if t.lb.Get(raw[i]) != "" {
			return &tracked{}, fmt.Errorf("sample of %q has label %q twice", name, raw[i])
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
		return &tracked{}, nil
	}
	ls := t.lb.Labels()
	if ls.Get(model.MetricNameLabel) == "" {
		return &tracked{}, fmt.Errorf("metric_relabel_configs leave %q without a name", name)
	}
	return &tracked{labels: t.share(ls)}, nil
}

// first reports whether the series' labels are met for the first time in this round;
// a second sample of one series in one round would contradict the first.
func (t *tracker) first(tr *tracked, round uint32) bool {
	if tr.seen == round || tr.twin && t.goesOn(tr.labels, round) {
		return false
	}
	tr.seen = round
	return true
}

// goesOn reports whether the round has a sample with these final labels.
func (t *tracker) goesOn(ls labels.Labels, round uint32) bool {
	return t.final.Find(ls.Hash(), func(o *tracked) bool { return o.seen == round && labels.Equal(o.labels, ls) }) != nil
}

// forget forgets a series that no round has had.
func (t *tracker) forget(tr *tracked) {
	t.known.Remove(tr)
	if !tr.labels.IsEmpty() {
		t.final.Remove(tr)
	}
	delete(t.errs, tr)
}

// mark notes that the round has the series.
func (t *tracker) mark(tr *tracked, round uint32) {
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
func (t *tracker) gone(round uint32, stale func(*tracked)) {
	if t.current == round && t.marked == t.known.Len() {
		return
	}
	var ended []*tracked
	t.known.RemoveIf(func(tr *tracked) bool {
		if tr.round == round {
			return false
		}
		ended = append(ended, tr)
		return true
	})
	for _, tr := range ended {
		delete(t.errs, tr)
		if tr.labels.IsEmpty() {
			continue
		}
		t.final.Remove(tr)
		// Another raw sample may go on with the same final labels.
		if tr.round != 0 && !tr.timed && !t.goesOn(tr.labels, round) {
			stale(tr)
		}
	}
}

// adopt takes over the series of a tracker that this one replaces, so that those
// which do not come again are marked stale after this one's first round.
func (t *tracker) adopt(old *tracker) {
	for tr := range old.known.All() {
		if tr.round != 0 && !tr.labels.IsEmpty() {
			// No sample finds it: the raw names may now lead elsewhere.
			t.add(&tracked{ref: tr.ref, labels: tr.labels, digest: tr.digest, round: adopted, timed: tr.timed})
		}
	}
}

// adopted is a round that never comes: it differs from every real one and from 0,
// which means "never appended".
const adopted = math.MaxUint32
