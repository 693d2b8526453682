package gate

import "time"

// Backoff yields the pauses between attempts: growing, jittered, bounded. While they are
// short, each lies between 1 and 2.5 times the previous one, later from 5/6 of it on. So
// agents that failed together do not come back together, and no pause is shorter than 0.8 of
// the previous one, even if timers are late.
//
// It does not reset at the first success: an overloaded receiver accepts some
// requests and refuses others, and an agent that returned to its initial rate after each
// success would keep it overloaded. Each success takes a third off the pause that the next
// failure begins with: after about a dozen, the backoff is reset.
type Backoff struct {
	Min, Max time.Duration // bounds of a pause; Min <= Max
	Last     time.Duration // the previous pause, reduced by successes since; 0 at the start
}

// shortPause is the bound below which late timers are significant.
const shortPause = time.Second

// Next returns the next pause; r is random in [0, 1). With brief, pauses grow to half of
// Max only, and shrink to that: the receiver is unreachable and needs no sparing, and its return
// should be noticed soon.
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

// Ease records a success. It returns how long to wait before the next request; r is
// random in [0, 1). So agents send slowly after an outage: the receiver must serve all
// of them. All waits together are a quarter of the last pause, on average.
func (b *Backoff) Ease(r float64) time.Duration {
	if b.Last = b.Last * 2 / 3; b.Last < b.Min {
		b.Last = 0
	}
	return time.Duration(r * float64(b.Last) / 4)
}

// RetryLate returns the wait before a retry when the receiver asked for after: not shorter,
// and jittered, so that agents with the same Retry-After do not return at the same moment.
func RetryLate(after time.Duration, r float64) time.Duration {
	return after + time.Duration(r*float64(after)/5)
}

// Holds yields the pauses between tests of a held target. The first few are short,
// so that brief trouble costs little. All are long enough that a target which
// refuses everything gets at most two requests in eight seconds (a batch and the empty
// write after it), and no sample twice in that time. All are at most a minute, jitter
// included: that is the longest delay until a recovered receiver is noticed.
type Holds struct {
	tests int // pauses handed out since data went through
}

const (
	firstTest = 12 * time.Second
	slowTest  = 50 * time.Second
	// dataTest is the pause between tests that send one sample or two. Such a hold may keep back all data
	// of a healthy fleet, so it ends within 15 seconds of its cause.
	dataTest = 13 * time.Second
)

// Next returns the next pause; r is random in [0, 1). byData is set if the test is a sample.
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

// Reset restarts the schedule after data went through.
func (h *Holds) Reset() { h.tests = 0 }
