package remotewrite

import (
	"slices"
	"testing"
)

// searchLate searches among n samples of which the first late ones are late, and some are bad.
// It checks the result as a resender does that sees nothing else.
func searchLate(t *testing.T, n, late, turn int, bad ...int) (found, asked int, taken []int) {
	l := newLateSearch(n, turn)
	for checked := false; ; {
		i, ok := l.next()
		if !ok && l.all() && !checked {
			checked = true
			l.check()
			continue
		}
		if !ok {
			return l.lo, asked, taken
		}
		if asked++; asked > 60 {
			t.Fatalf("%d of %d late, %v bad: no end", late, n, bad)
		}
		if slices.Contains(taken, i) {
			t.Fatalf("%d of %d late, %v bad: %d is asked for though it was taken", late, n, bad, i)
		}
		ok = i >= late && !slices.Contains(bad, i)
		if l.tell(ok); ok {
			taken = append(taken, i)
		}
	}
}

func TestLateSearch(t *testing.T) {
	for n := range 200 {
		for late := 0; late <= n; late++ {
			got, asked, _ := searchLate(t, n, late, n)
			if got != late {
				t.Errorf("found %d late of %d, want %d", got, n, late)
			}
			if (late == 0 && asked > 1) || (late == n && asked > 9) || asked > 16 {
				t.Errorf("%d questions when %d of %d are late", asked, late, n)
			}
		}
	}
}

// Wherever one sample is bad, or three neighbours are, or the first, the last and some in
// between: no good sample that is not stored is taken for it.
func TestLateSearchAmongBadSamples(t *testing.T) {
	for _, n := range []int{2, 3, 4, 7, 20, 82, 146, 500} {
		for late := 0; late <= n; late++ {
			for at := range n {
				for _, bad := range [][]int{{at}, {at - 2, at - 1, at}, {0, n / 2, n - 1, at}} {
					got, _, taken := searchLate(t, n, late, at, bad...)
					for i := late; i < got; i++ {
						if !slices.Contains(bad, i) && !slices.Contains(taken, i) {
							t.Fatalf("%d of %d late, %v bad: found %d", late, n, bad, got)
						}
					}
				}
			}
		}
	}
}
