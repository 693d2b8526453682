// Package pace decides how fast a target is sent requests: the pauses after failures, and how many shards send. It decides
// without I/O and clock.
package pace

import "time"

// Backoff yields the pauses between attempts: growing, jittered, bounded. While they are
// short each lies between 1 and 2.5 times the one before, later from 5/6 of it on, so that
// agents which failed together do not come back together, and none is shorter than 0.8 of
// the one before even when timers are late.
//
// It does not forget at the first success: a receiver that is overloaded takes some
// requests and refuses others, and whoever knocks as fast as at the beginning after each
// success keeps it so. Each success takes a third off the pause that the next trouble
// begins with: a dozen, and all is forgotten.
type Backoff struct {
	Min, Max time.Duration // bounds of a pause; Min <= Max
	Last     time.Duration // the pause before, eased since; 0 at the start
}

// shortPause is so short that a timer's lateness counts.
const shortPause = time.Second

// Next returns the next pause; r is random in [0, 1). With brief, pauses grow to half of
// Max only, and shrink to that: nobody is there to be spared, and the sooner its return
// is noticed the better.
func (b *Backoff) Next(r float64, brief bool) time.Duration {
	lo, hi := b.Last, b.Last*5/2
	if b.Last >= shortPause {
		lo = b.Last * 5 / 6
	}
	if b.Last == 0 {
		lo, hi = b.Min, b.Min*2
	}
	limit := b.Max
	if brief {
		limit = max(b.Max/2, b.Min, b.Last)
	}
	lo, hi = max(lo, b.Min), min(hi, limit)
	lo = min(lo, hi)
	b.Last = lo + time.Duration(r*float64(hi-lo))
	return b.Last
}

// Ease takes note of a success. It returns how long to wait before the next request; r is
// random in [0, 1). After an outage agents thus send slowly first: the receiver has all
// of them to serve. All waits together are a quarter of the last pause, on average.
func (b *Backoff) Ease(r float64) time.Duration {
	if b.Last = b.Last * 2 / 3; b.Last < b.Min {
		b.Last = 0
	}
	return time.Duration(r * float64(b.Last) / 4)
}

// RetryLate is after how long to try again when the receiver asked for that: not sooner,
// nor all agents that it told the same in the same moment.
func RetryLate(after time.Duration, r float64) time.Duration {
	return after + time.Duration(r*float64(after)/5)
}

// Holds yields the pauses between tests of a held target. The first few are short
// enough that a passing trouble costs little; all are long enough that a target which
// refuses everything sees at most two requests in eight seconds (a batch and the empty
// write after it), and no sample twice in that time. None is longer than a minute, jitter
// included: so long a target may take to notice that its receiver is well again.
type Holds struct {
	tests int // how many pauses were handed out since data went through
}

const (
	firstTest = 12 * time.Second
	slowTest  = 50 * time.Second
	// dataTest is between tests that are one sample or two. What such a hold keeps back may be all data
	// of a fleet, for no fault of its own: it ends within 15 seconds of its cause.
	dataTest = 13 * time.Second
)

// Next returns the next pause; r is random in [0, 1). byData says that the test is a sample.
func (h *Holds) Next(r float64, byData bool) time.Duration {
	d := slowTest
	switch {
	case byData:
		d = dataTest
	case h.tests < 3:
		d = firstTest << h.tests
	}
	h.tests++
	return d + time.Duration(r*float64(d)/10)
}

// Reset begins anew: data went through.
func (h *Holds) Reset() { h.tests = 0 }
