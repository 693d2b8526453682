package inputs

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/prometheus/storage"
)

// pair is two inputs that bring the same series.
type pair struct {
	series      int    // at present: series whose owner is the one and whose rival the other
	samples     uint64 // of the other, since first
	example     string
	first, last time.Time
}

// rival is an input that brings a series of another one.
type rival struct {
	input *Input
	seen  uint32 // tick of its last commit
}

// meet notes that in brings a series of another input. p.mu must be held.
func (p *Path) meet(ref storage.SeriesRef, s *series, in *Input, tick uint32) {
	key := [2]*Input{s.owner, in}
	two := p.pairs[key]
	now := time.Now()
	if two == nil {
		ls, _, _, _, _, _, _ := p.log.Newest(ref)
		two = &pair{first: now, example: ls.String()}
		p.pairs[key] = two
		p.logger.Warn("Two inputs bring the same series; receivers get the samples of both mixed, or refuse one", "input", key[0].String(),
			"other", key[1].String(), "series", two.example)
	}
	two.samples++
	two.last = now
	if p.rivals[ref].input != in {
		p.part(ref, s)
		two.series++
	}
	p.rivals[ref] = rival{in, tick}
}

// part notes that the rival of a series has it no longer, if there is one. p.mu must be
// held.
func (p *Path) part(ref storage.SeriesRef, s *series) {
	r, ok := p.rivals[ref]
	if !ok {
		return
	}
	if two := p.pairs[[2]*Input{s.owner, r.input}]; two != nil {
		two.series--
	}
	delete(p.rivals, ref)
}

// endPairs forgets the pairs that have had nothing in common for a while. p.mu must be held.
func (p *Path) endPairs() {
	for key, two := range p.pairs {
		if two.series == 0 && time.Since(two.last) > lapse {
			delete(p.pairs, key)
			p.logger.Info("Two inputs bring the same series no longer", "input", key[0].String(), "other", key[1].String())
		}
	}
}

// Duplicate tells of two inputs that bring the same series.
type Duplicate struct {
	Input, Other string // the one that had them first, as in "probe host"
	Series       int    // at present
	Samples      uint64 // of the other, since then
	Example      string // one of the series
	Since, Last  time.Time
}

// Duplicates are the pairs of inputs that bring the same series, or did in the last five
// minutes or a little longer, in the order of their names.
func (p *Path) Duplicates() []Duplicate {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Duplicate
	for key, two := range p.pairs {
		all = append(all, Duplicate{
			Input: key[0].String(), Other: key[1].String(), Series: two.series, Samples: two.samples,
			Example: two.example, Since: two.first, Last: two.last,
		})
	}
	slices.SortFunc(all, func(a, b Duplicate) int {
		return cmp.Or(cmp.Compare(a.Input, b.Input), cmp.Compare(a.Other, b.Other))
	})
	return all
}
