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

// tracked is one series of a probe: two digests of its raw name and labels, its final labels, and when it was last
// seen. There is one for each series of each device, so it is kept small.
type tracked struct {
	ref    storage.SeriesRef
	labels labels.Labels // final; empty when metric_relabel_configs removed it
	digest uint64        // of the raw name and labels, as is second; see tracker.find
	next   *tracked      // in tracker.known
	link   *tracked      // in tracker.final
	second uint32
	round  uint32 // the last round with the series; set by mark
	seen   uint32 // the last round in which it was the first series with its labels; set by first
	twin   bool   // another series may have the same labels
	bad    bool   // invalid: tracker.errs says why; its samples are refused
	// timed means that the sample carried its own timestamp: such a series is not marked stale, as in a scrape.
	timed bool
}

// tracker maps a probe's raw samples to final series and finds series that have disappeared. It belongs to one probe's
// loop.
type tracker struct {
	target  labels.Labels
	relabel []*relabel.Config

	known *refs.Chains[tracked] // all, by digest
	final *refs.Chains[tracked] // those with labels, by these
	errs  map[*tracked]error    // errors of the bad series

	// marked is how many known series round current had; if it had all, none has disappeared.
	current uint32
	marked  int

	firstSeed, secondSeed maphash.Seed // of the digests

	share func(labels.Labels) labels.Labels // returns equal labels that are in memory already, if any

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

// find returns the series of a sample, which it creates for a new sample. It identifies raw names and labels by 96 bits
// of digests with keys of this process, not by their text, which would take more memory than everything else; equal
// digests of two series of one probe are practically impossible.
func (t *tracker) find(s *Sample) *tracked {
	name := s.Name
	if name == "" {
		name = s.Family.Name
	}
	t.key = append(t.key[:0], name...)
	for _, l := range s.Labels {
		t.key = append(t.key, 0xff) // not a byte of valid UTF-8
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

// fault returns why a series is invalid, nil if it is valid.
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

// resolve returns the final labels: the sample's own, the target's over them, relabelled. The error says why the sample
// is invalid.
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

// first reports whether this is the first series with its labels in this round; a second sample for one series in one
// round would contradict the first.
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

// forget removes a series that no round had.
func (t *tracker) forget(tr *tracked) {
	t.known.Remove(tr)
	if !tr.labels.IsEmpty() {
		t.final.Remove(tr)
	}
	delete(t.errs, tr)
}

// mark records that the round has the series.
func (t *tracker) mark(tr *tracked, round uint32) {
	if t.current != round {
		t.current, t.marked = round, 0
	}
	if tr.round != round {
		tr.round = round
		t.marked++
	}
}

// gone calls stale for each series that is missing in this round but was in earlier ones, and removes it.
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
		// Another raw sample may continue the series with the same final labels.
		if tr.round != 0 && !tr.timed && !t.goesOn(tr.labels, round) {
			stale(tr)
		}
	}
}

// adopt takes over the series of a tracker that this one replaces, so that those which do not return are marked stale
// after the first round.
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
