package inputs

import (
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// maxOdd bounds the series that are remembered because others may become equal to them.
const maxOdd = 100_000

// twins are series that differ in the log and are the same at a target: external_labels adds the label that one of them
// lacks, or the escaping of names for remote write 1.0 and pull leaves no difference. Guarded by Path.mu.
//
// Such a series has an odd form: with an external label of its own, or with a name that needs escaping. Without these it
// has its plain form, by which equal series find each other. Nearly all series have it already, and cost nothing here.
type twins struct {
	external labels.Labels
	odd      map[uint64]storage.SeriesRef            // odd series, by the hash of their plain form
	of       map[storage.SeriesRef]storage.SeriesRef // a series with a twin; the other one was there first
}

// Become sets the external labels. Series that the inputs have are checked again if these have changed.
func (p *Path) Become(external labels.Labels) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.twins.odd != nil && labels.Equal(p.twins.external, external) {
		return
	}
	p.twins = twins{external: external, odd: map[uint64]storage.SeriesRef{}, of: map[storage.SeriesRef]storage.SeriesRef{}}
	for ref := range p.series.All() {
		if ls, _, _, _, _, _, ok := p.log.Newest(storage.SeriesRef(ref)); ok {
			p.pairUp(storage.SeriesRef(ref), ls)
		}
	}
}

// plain returns the plain form of ls, and whether ls differs from it.
func (t *twins) plain(ls labels.Labels) (plain labels.Labels, odd bool) {
	legacy := func(l labels.Label) bool {
		return model.LegacyValidation.IsValidLabelName(l.Name) && (l.Name != model.MetricNameLabel || model.LegacyValidation.IsValidMetricName(l.Value))
	}
	ours := func(l labels.Label) bool { return t.external.Get(l.Name) == l.Value && l.Value != "" }
	ls.Range(func(l labels.Label) { odd = odd || ours(l) || !legacy(l) })
	if !odd {
		return ls, false
	}
	b := labels.NewBuilder(labels.EmptyLabels())
	ls.Range(func(l labels.Label) {
		switch {
		case ours(l):
		case l.Name == model.MetricNameLabel:
			b.Set(l.Name, model.EscapeName(l.Value, model.UnderscoreEscaping))
		default:
			b.Set(model.EscapeName(l.Name, model.UnderscoreEscaping), l.Value)
		}
	})
	return b.Labels(), true
}

// pairUp looks for the twin of a new series. p.mu must be held.
func (p *Path) pairUp(ref storage.SeriesRef, ls labels.Labels) {
	t := &p.twins
	plain, odd := t.plain(ls)
	if !odd && len(t.odd) == 0 {
		return
	}
	hash, other := plain.Hash(), storage.SeriesRef(0)
	if odd {
		other = p.log.Ref(plain)
	}
	if p.get(other) == nil {
		other = t.odd[hash]
	}
	if other != ref && p.get(other) != nil {
		t.of[ref] = other
	}
	if odd && p.get(t.odd[hash]) == nil && t.odd != nil && len(t.odd) < maxOdd {
		t.odd[hash] = ref
	}
}

// meetTwin records a sample of a series that may have a twin. p.mu must be held.
func (p *Path) meetTwin(ref storage.SeriesRef, in *Input, tick uint32) {
	other, ok := p.twins.of[ref]
	if !ok {
		return
	}
	s := p.get(other)
	if s == nil {
		delete(p.twins.of, ref)
		return
	}
	p.meet(other, s, in, tick, ref)
}

// endTwins forgets series that have ended. p.mu must be held.
func (p *Path) endTwins() {
	for hash, ref := range p.twins.odd {
		if p.get(ref) == nil {
			delete(p.twins.odd, hash)
		}
	}
	for ref := range p.twins.of {
		if p.get(ref) == nil {
			delete(p.twins.of, ref)
		}
	}
}
