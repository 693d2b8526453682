package split

import (
	"fmt"
	"testing"
	"time"
)

// TestReceiverTurnsBad: a receiver always refuses some series. During the search for them it begins to refuse everything in the same
// words: one of several backends for good, or all for some requests. No good sample is rejected, whenever that is.
func TestReceiverTurnsBad(t *testing.T) {
	type fault struct {
		name string
		bad  func(requests int) bool // since it began, from 1
	}
	var faults []fault
	for _, n := range []int{2, 3, 4} {
		faults = append(faults, fault{fmt.Sprintf("one of %d backends", n), func(requests int) bool { return requests%n == 1 }})
	}
	for n := range 16 {
		faults = append(faults, fault{fmt.Sprintf("for %d requests", n+1), func(requests int) bool { return requests <= n+1 }})
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			const most = 2000 // requests of a search
			for from := range most {
				if turned := turnsBad(t, from, f.bad); !turned {
					return // the search was over before
				}
			}
			t.Errorf("a search took more than %d requests", most)
		})
	}
}

// turnsBad searches, and reports whether the fault began, which is after so many requests.
func turnsBad(t *testing.T, from int, fault func(requests int) bool) (turned bool) {
	const series = 200
	never := func(i int) bool { return i%5 == 1 }
	samples := make([]Sample, series)
	for i := range samples {
		samples[i] = Sample{Series: uint64(i + 1), T: 1000}
	}
	now, refusal := time.Unix(0, 0), Answer{Kind: Opaque, Words: "bad request"}
	m := New(new(Facts), Config{}, samples)
	m.Refused(refusal, now)
	requests := 0
	for step := m.Next(now); step.Do == Send || step.Do == Control; step = m.Next(now) {
		a := Answer{Kind: Taken}
		for _, i := range step.Samples {
			if never(i) {
				a = refusal
			}
		}
		if requests++; requests > from && fault(requests-from) {
			a, turned = refusal, true
		}
		m.Tell(a, now)
		for _, v := range m.Verdicts() {
			for _, i := range v.Samples {
				if !never(i) && v.Outcome == Rejected {
					t.Errorf("sample %d is good, and rejected; the receiver turned bad after %d requests", i, from)
				}
			}
		}
	}
	return turned
}
