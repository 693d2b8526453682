package remotewrite

import "slices"

// lateSearch finds out by single samples how many of a chunk are late, in the order of
// their successors: these are a prefix, since what was stored is. It is pure. The first
// one tells whether any is late. If the last one is as well, and another between them, all
// seem to be: that is weak, as these may be bad, but what comes after the chunk mostly shows
// it. Otherwise the end of the late ones is between the first and the last.
//
// The last one that is late may be bad instead, and the end before it. So some before it are
// asked for as well: the nearest one, for what is bad by itself, and ones further and
// further away, as neighbours are likely to be bad together. The same check confirms that all
// are late where nothing after the chunk shows it.
//
// Invariant: those before lo are late, or bad; those from hi on are not late, but for the
// last one, which may be bad.
type lateSearch struct {
	lo, hi  int
	n       int
	turn    int // picks the one between the first and the last
	asked   int
	step    lateStep
	gap     int   // of the check, before the last one that seems late
	refused []int // those that were, in the order of asking
}

// lateStep is what a lateSearch asked for last.
type lateStep uint8

const (
	askedNothing lateStep = iota
	askedFirst
	askedLast
	askedMiddle // after the last one was refused
	halving
	checking
)

// newLateSearch searches among n samples. Of several searches with the same n, those with other
// turns ask for another one between the first and the last: the same series may be bad in
// each chunk.
func newLateSearch(n, turn int) lateSearch { return lateSearch{hi: n, n: n, turn: turn} }

// all reports whether all seem to be late. That is confirmed by check only.
func (l *lateSearch) all() bool { return l.lo == l.n }

// check has next ask for what confirms the result.
func (l *lateSearch) check() { l.step, l.gap = checking, 1 }

// next returns the place of the sample to ask for, or false when lo is the result.
func (l *lateSearch) next() (int, bool) {
	if l.lo >= l.hi && l.step != checking {
		if l.lo < 2 || l.all() {
			return 0, false
		}
		l.check()
	}
	switch l.step {
	case checking:
		for {
			l.asked = l.lo - 1 - l.gap
			if l.asked <= 0 {
				return 0, false
			}
			if l.gap < 3 {
				l.gap++
			} else {
				l.gap *= 4
			}
			if !slices.Contains(l.refused, l.asked) {
				return l.asked, true
			}
		}
	case askedNothing:
		l.step, l.asked = askedFirst, 0
	case askedFirst:
		l.step, l.asked = askedLast, l.hi-1
	case askedMiddle:
		l.asked = l.lo + (l.n/2+l.turn*(l.n/5+1))%(l.hi-1-l.lo)
	default:
		l.step, l.asked = halving, l.lo+(l.hi-l.lo)/2
	}
	return l.asked, true
}

// tell says whether it was taken.
func (l *lateSearch) tell(taken bool) {
	if !taken {
		l.refused = append(l.refused, l.asked)
	}
	switch {
	case l.step == checking && taken: // what seemed to be the last one is bad
		l.step, l.hi, l.lo = halving, l.asked, 0
		for _, i := range l.refused {
			if i < l.hi {
				l.lo = max(l.lo, i+1)
			}
		}
	case l.step == checking:
	case taken:
		l.hi = l.asked
		if l.step == askedMiddle {
			l.step = halving // the last one is bad
		}
	case l.step == askedLast && l.asked > l.lo:
		l.step = askedMiddle
	case l.step == askedMiddle:
		l.lo = l.hi
	default:
		l.lo = l.asked + 1
	}
}
