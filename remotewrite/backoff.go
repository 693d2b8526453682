package remotewrite

import "time"

// backoff yields the pauses between attempts: growing, jittered, bounded. Each lies
// between 0.9 and 2.5 times the one before, so that agents which failed together do
// not come back together, and none is shorter than 0.8 of the one before even when
// timers are late.
type backoff struct {
	min, max time.Duration // bounds of a pause; min <= max
	last     time.Duration // the pause before; 0 at the start
}

// next returns the next pause; r is random in [0, 1). Where the target did not answer,
// pauses grow to half of max only, and shrink to that: nobody is there to be spared, and
// the sooner its return is noticed the better.
func (b *backoff) next(r float64, answered bool) time.Duration {
	lo, hi := b.last*9/10, b.last*5/2
	if b.last == 0 {
		lo, hi = b.min, b.min*2
	}
	limit := b.max
	if !answered {
		limit = max(b.max/2, b.min, b.last)
	}
	lo, hi = max(lo, b.min), min(hi, limit)
	lo = min(lo, hi)
	b.last = lo + time.Duration(r*float64(hi-lo))
	return b.last
}

// reset starts over, after a success.
func (b *backoff) reset() { b.last = 0 }

// holdSchedule yields the pauses between tests of a held target. The first few are short
// enough that a passing trouble costs little; all are long enough that a target which
// refuses everything sees at most two requests in eight seconds (a batch and the empty
// write after it), and no sample twice in that time. None is longer than a minute, jitter
// included: so long a target may take to notice that its receiver is well again.
type holdSchedule struct {
	tests int // how many pauses were handed out since data went through
}

const (
	firstTest = 12 * time.Second
	slowTest  = 50 * time.Second
)

// next returns the next pause; r is random in [0, 1).
func (h *holdSchedule) next(r float64) time.Duration {
	d := slowTest
	if h.tests < 3 {
		d = firstTest << h.tests
	}
	h.tests++
	return d + time.Duration(r*float64(d)/10)
}

func (h *holdSchedule) reset() { h.tests = 0 }
