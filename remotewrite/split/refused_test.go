package split

import (
	"fmt"
	"testing"
	"time"
)

// TestReceiverTurnsBad: a receiver always refuses some series, and refused the last sample of some good ones. During the search it begins to
// refuse everything in the same words: one of several backends for good, or all for some requests. No good sample is rejected, whenever that
// is.
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
		if i%7 == 3 {
			samples[i].Rejected = 1
		}
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

// refuses drives a search in which the receiver refuses one sample, and those of a series that come out of order. It returns the verdicts.
func refuses(t *testing.T, bad int, samples []Sample) (verdicts []Verdict) {
	t.Helper()
	now, refusal := time.Unix(0, 0), Answer{Kind: Opaque, Words: "bad request"}
	newest := make(map[uint64]int64)
	m := New(new(Facts), Config{}, samples)
	m.Refused(refusal, now)
	for step := m.Next(now); step.Do == Send || step.Do == Control; step = m.Next(now) {
		a := Answer{Kind: Taken}
		for _, i := range step.Samples {
			if i == bad {
				a = refusal
			}
		}
		for _, i := range step.Samples {
			if s := samples[i]; a.Kind == Taken && s.T < newest[s.Series] {
				t.Errorf("sample %d is sent after a newer one of its series", i)
			} else if a.Kind == Taken {
				newest[s.Series] = s.T
			}
		}
		m.Tell(a, now)
		verdicts = append(verdicts, m.Verdicts()...)
	}
	return verdicts
}

// TestTakenSampleClearsItsSeries: a series whose older sample in the batch is taken has no row of rejected samples any more.
func TestTakenSampleClearsItsSeries(t *testing.T) {
	const row = MostRejected - 1
	for _, v := range refuses(t, 2, []Sample{{Series: 1, T: 1000, Rejected: row}, {Series: 2, T: 1000}, {Series: 1, T: 2000, Rejected: row}, {Series: 2, T: 2000}}) {
		if v.Mute {
			t.Errorf("series 1 is muted after one rejected sample: %+v", v)
		}
	}
}

// TestSuspectsStayInOrder: the samples of a series are sent in order, also if only one of two series of the log with the same final labels
// had a rejected sample.
func TestSuspectsStayInOrder(t *testing.T) {
	for _, v := range refuses(t, 3, []Sample{{Series: 1, T: 1000, Rejected: 1}, {Series: 1, T: 2000}, {Series: 2, T: 2000}, {Series: 3, T: 2000}}) {
		if v.Outcome != Delivered && (len(v.Samples) != 1 || v.Samples[0] != 3) {
			t.Errorf("a good sample is not delivered: %+v", v)
		}
	}
}
