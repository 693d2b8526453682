package split

import (
	"fmt"
	"testing"
	"time"
)

// TestBackendTurnsBad: a receiver of several backends always refuses some series. During the search for them one backend begins to refuse
// everything in the same words. No good sample is rejected, whenever that is.
func TestBackendTurnsBad(t *testing.T) {
	const series, most = 200, 2000
	for _, backends := range []int{2, 3, 4} {
		for _, before := range []uint8{0, 1} {
			t.Run(fmt.Sprintf("%d backends/%d rejected before", backends, before), func(t *testing.T) {
				for from := range most {
					bad := func(i int) bool { return i%5 == 1 }
					samples := make([]Sample, series)
					for i := range samples {
						samples[i] = Sample{Series: uint64(i + 1), T: 1000}
						if bad(i) {
							samples[i].Rejected = before
						}
					}
					refusal := Answer{Kind: Opaque, Words: "bad request"}
					m := New(new(Facts), Config{}, samples)
					m.Refused(refusal, time.Unix(0, 0))
					requests, turned := 0, false
					for step := m.Next(time.Unix(0, 0)); step.Do == Send || step.Do == Control; step = m.Next(time.Unix(0, 0)) {
						a := Answer{Kind: Taken}
						for _, i := range step.Samples {
							if bad(i) {
								a = refusal
							}
						}
						if requests++; requests > from && requests%backends == 0 {
							a, turned = refusal, true
						}
						m.Tell(a, time.Unix(0, 0))
						for _, v := range m.Verdicts() {
							for _, i := range v.Samples {
								if !bad(i) && v.Outcome == Rejected {
									t.Errorf("sample %d is good, and rejected; the backend turned bad at request %d", i, from)
								}
							}
						}
					}
					if !turned { // the search was over
						return
					}
				}
				t.Errorf("a search took more than %d requests", most)
			})
		}
	}
}
