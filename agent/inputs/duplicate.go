package inputs

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/prometheus/storage"
)

// pair is two inputs that bring the same series.
type pair struct {
	sent        bool   // the series differ in the log
	series      int    // now: series owned by the first input with the second as rival
	samples     uint64 // of the second input, since first
	example     string
	first, last time.Time
}

// rival is an input that brings a series owned by another input.
type rival struct {
	input *Input
	seen  uint32 // tick of its last commit
}

// meet records that in brings a series of another input, or its twin unless that is 0. p.mu must be held.
func (p *Path) meet(ref storage.SeriesRef, s *series, in *Input, tick uint32, twin storage.SeriesRef) {
	key := [2]*Input{p.ownerOf(s), in}
	two := p.pairs[key]
	now := time.Now()
	if two == nil {
		ls, _, _, _, _, _, _ := p.log.Newest(ref)
		two = &pair{first: now, example: ls.String(), sent: twin != 0}
		if two.sent {
			ls, _, _, _, _, _, _ := p.log.Newest(twin)
			two.example += " and " + ls.String()
		}
		p.pairs[key] = two
		p.logger.Warn("Two inputs append the same series; the target gets the samples of both mixed, or refuses some", "input", key[0].String(),
			"other", key[1].String(), "series", two.example, "equal_by_external_labels_or_escaping", two.sent)
	}
	two.samples++
	two.last = now
	if p.rivals[ref].input != in {
		p.part(ref, s)
		two.series++
	}
	p.rivals[ref] = rival{in, tick}
}

// part ends the rivalry over a series, if there is one. p.mu must be held.
func (p *Path) part(ref storage.SeriesRef, s *series) {
	r, ok := p.rivals[ref]
	if !ok {
		return
	}
	if two := p.pairs[[2]*Input{p.ownerOf(s), r.input}]; two != nil {
		two.series--
	}
	delete(p.rivals, ref)
}

// endPairs removes the pairs that have shared no series for longer than lapse. p.mu must be held.
func (p *Path) endPairs() {
	for key, two := range p.pairs {
		if two.series == 0 && time.Since(two.last) > lapse {
			delete(p.pairs, key)
			p.logger.Info("Two inputs no longer append the same series", "input", key[0].String(), "other", key[1].String())
		}
	}
}

// Duplicate describes two inputs that bring the same series.
type Duplicate struct {
	Input, Other string // Input had the series first; as in "probe host"
	Series       int    // now
	Samples      uint64 // of Other, since Since
	Example      string // one of the shared series; both forms of it if Sent
	Sent         bool   // the series differ in the log, but external_labels or the escaping of names make them the same
	Since, Last  time.Time
}

// Duplicates returns the pairs of inputs that share series, or did within the last five
// minutes or slightly longer, sorted by name.
func (p *Path) Duplicates() []Duplicate {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Duplicate
	for key, two := range p.pairs {
		all = append(all, Duplicate{
			Input: key[0].String(), Other: key[1].String(), Series: two.series, Samples: two.samples,
			Example: two.example, Sent: two.sent, Since: two.first, Last: two.last,
		})
	}
	slices.SortFunc(all, func(a, b Duplicate) int {
		return cmp.Or(cmp.Compare(a.Input, b.Input), cmp.Compare(a.Other, b.Other))
	})
	return all
}
