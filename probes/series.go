package probes

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/refs"
)

// tracked is one series of a probe: two digests of its raw name and labels, and when it was last seen. The log alone has its final
// labels. There is one for each series of each device, so it is kept small.
type tracked struct {
	ref    storage.SeriesRef // 0 if the log has never accepted a sample
	digest uint64            // of the raw name and labels, as is second; see tracker.find
	round  uint32            // the last round with the series; set by mark
	second uint16
	flags  flags
}

// flags are properties of a series.
type flags uint8

const (
	bad     flags = 1 << iota // invalid: tracker.errs says why; its samples are refused
	dropped                   // metric_relabel_configs removed it
	timed                     // the sample carried its own timestamp: such a series is not marked stale, as in a scrape
)

// tracker maps a probe's raw samples to final series and finds series that have disappeared. It belongs to one probe's
// loop.
type tracker struct {
	target  labels.Labels
	relabel []*relabel.Config

	// series are all series, in the order in which they came first. Most probes bring them in the same order in each
	// round: next is the position that the next sample probably has.
	series refs.List[tracked]
	next   int
	errs   map[uint64]error // errors of the bad series, by digest

	// The positions of all series by digest. Only a round that needs them builds them, because between rounds they would take as
	// much memory as the series themselves; see endRound.
	byDigest *refs.Positions

	// marked is how many series round current had; if it had all, none has disappeared.
	current uint32
	marked  int

	firstSeed, secondSeed maphash.Seed // of the digests

	key []byte // scratch
	lb  *labels.Builder
}

func newTracker(target labels.Labels, rc []*relabel.Config) *tracker {
	return &tracker{
		target: target, relabel: rc, series: refs.NewList[tracked](),
		firstSeed: maphash.MakeSeed(), secondSeed: maphash.MakeSeed(),
		lb: labels.NewBuilder(labels.EmptyLabels()),
	}
}

// find returns the series of a sample, which it creates for a new sample, and then also its final labels. The series is valid until
// the next call. find identifies raw names and labels by 80 bits of digests with keys of this process, not by their text, which
// would take more memory than everything else; equal digests of two series of one probe are practically impossible.
func (t *tracker) find(s *Sample) (tr *tracked, final labels.Labels) {
	t.key = append(t.key[:0], cmp.Or(s.Name, s.Family.Name)...)
	for _, l := range s.Labels {
		t.key = append(t.key, 0xff) // not a byte of valid UTF-8
		t.key = append(t.key, l...)
	}
	digest, second := maphash.Bytes(t.firstSeed, t.key), uint16(maphash.Bytes(t.secondSeed, t.key)) // #nosec G115 -- a part of it
	is := func(i int) bool {
		tr := t.series.At(i)
		return tr.digest == digest && tr.second == second && tr.round != adopted
	}
	i := t.next
	if i >= t.series.Len() || !is(i) {
		i = t.digests().Find(digest, is)
	}
	if i >= 0 {
		t.next = i + 1
		return t.series.At(i), final
	}
	final, err := t.resolve(s)
	tr = t.series.Add(tracked{digest: digest, second: second})
	tr.set(dropped, err == nil && final.IsEmpty())
	if err != nil {
		tr.set(bad, true)
		if t.errs == nil {
			t.errs = make(map[uint64]error)
		}
		t.errs[digest] = err
	}
	if t.byDigest != nil {
		t.byDigest.Add(digest)
	}
	return tr, final
}

// digests returns the positions of all series by digest.
func (t *tracker) digests() *refs.Positions {
	if t.byDigest == nil {
		t.byDigest = refs.NewPositions(t.series.Len())
		for _, tr := range t.series.All() {
			t.byDigest.Add(tr.digest)
		}
	}
	return t.byDigest
}

// endRound releases the positions that the round needed.
func (t *tracker) endRound() { t.byDigest, t.next = nil, 0 }

// is reports whether a series has a property.
func (tr *tracked) is(f flags) bool { return tr.flags&f != 0 }

// set sets whether a series has a property.
func (tr *tracked) set(f flags, yes bool) {
	tr.flags &^= f
	if yes {
		tr.flags |= f
	}
}

// fault returns why a series is invalid, nil if it is valid.
func (t *tracker) fault(tr *tracked) error {
	if !tr.is(bad) {
		return nil
	}
	return t.errs[tr.digest]
}

// resolve returns the final labels: the sample's own, the target's over them, relabelled; none if metric_relabel_configs removed the
// series. The error says why the sample is invalid.
func (t *tracker) resolve(s *Sample) (final labels.Labels, err error) {
	name, raw := cmp.Or(s.Name, s.Family.Name), s.Labels
	if len(raw)%2 != 0 {
		return final, fmt.Errorf("sample of %q has %d label strings, want name and value pairs", name, len(raw))
	}
	if !model.UTF8Validation.IsValidMetricName(name) {
		return final, fmt.Errorf("%q is not a metric name", name)
	}
	t.lb.Reset(labels.EmptyLabels())
	for i := 0; i < len(raw); i += 2 {
		if !model.UTF8Validation.IsValidLabelName(raw[i]) || raw[i] == model.MetricNameLabel {
			return final, fmt.Errorf("sample of %q: %q is not a label name", name, raw[i])
		}
		if !model.LabelValue(raw[i+1]).IsValid() {
			return final, fmt.Errorf("sample of %q: value of label %q is not UTF-8: %q", name, raw[i], raw[i+1])
		}
		if t.lb.Get(raw[i]) != "" {
			return final, fmt.Errorf("sample of %q has label %q twice", name, raw[i])
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
		return final, nil
	}
	ls := t.lb.Labels()
	if ls.Get(model.MetricNameLabel) == "" {
		return final, fmt.Errorf("metric_relabel_configs leave %q without a name", name)
	}
	return ls, nil
}

// forget removes the series that find has just created: no round has it.
func (t *tracker) forget(tr *tracked) {
	delete(t.errs, tr.digest)
	t.series.Pop()
	if t.byDigest != nil {
		t.byDigest.Pop()
	}
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

// gone removes the series that are missing in this round but were in earlier ones. It adds them to ended, and returns each of these
// once, without those that the round has: another raw sample may continue the series with the same final labels.
func (t *tracker) gone(round uint32, ended []storage.SeriesRef) []storage.SeriesRef {
	if t.current != round || t.marked != t.series.Len() {
		t.series.Keep(func(tr *tracked) bool {
			if tr.round == round {
				return true
			}
			delete(t.errs, tr.digest)
			if !tr.is(timed) {
				ended = append(ended, tr.ref)
			}
			return false
		})
		t.endRound() // the positions have changed
	}
	if len(ended) == 0 {
		return nil
	}
	done := map[storage.SeriesRef]bool{0: true}
	for _, tr := range t.series.All() {
		done[tr.ref] = true
	}
	return slices.DeleteFunc(ended, func(ref storage.SeriesRef) bool {
		was := done[ref]
		done[ref] = true
		return was
	})
}

// adopt takes over the series of a tracker that this one replaces, so that those which do not return are marked stale
// after the first round. No sample finds them: the raw names may now lead elsewhere.
func (t *tracker) adopt(old *tracker) {
	for _, tr := range old.series.All() {
		t.series.Add(tracked{ref: tr.ref, digest: tr.digest, round: adopted, flags: tr.flags & timed})
	}
}

// adopted is a round that never comes: it differs from every real one and from 0,
// which means "never appended".
const adopted = math.MaxUint32
