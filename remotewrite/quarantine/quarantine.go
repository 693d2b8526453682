// Package quarantine decides which series are not sent for a while, because the receiver refuses them for a known
// reason: a limit of series is reached, a label is too long, a type conflicts.
//
// A [Book] is a value without I/O, clock or lock. Its caller passes every sample of a series in quarantine to
// Meet, which decides whether the sample is dropped, sent alone as a probe, or sent normally because
// its series is released:
//
//	three series are refused alone for a reason ── the reason is known (Refused, Known)
//	new series are refused together for it ─────── eight at random are refused alone, and a control is accepted:
//	                                               all go into quarantine (Try, Put); 64 soon after the start
//	a minute, another minute ───────────────────── one sample at random is a probe (Meet, Probed)
//	a probe is accepted ────────────────────────── one series is released, then two a second later, four, eight …
//	one is refused for the reason again ────────── no more are released; the next probe is a minute later (Stop)
package quarantine

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// MaxReasons is how many reasons a book can have.
	MaxReasons = 64
	// knownFrom is how many series must be refused alone for a reason before others go into quarantine together.
	knownFrom = 3
	// witnesses is how many of the series refused together are sent alone before all of them go into quarantine.
	witnesses = 8
	// manyWitnesses replaces witnesses for settleFor after two events: the start, because the target may have many series
	// of which this process has delivered no sample yet; and a release, because the target may have accepted some of the
	// released series. With one good series in ten, 8 witnesses miss all good ones in 43 % of the trials, and 64 in 0.1 %.
	manyWitnesses = 64
	settleFor     = 10 * time.Minute
	// ProbeEvery is how often one sample is sent of all series in quarantine for a reason.
	ProbeEvery = time.Minute
	// LetterEvery is how often a reason gets a letter, which counts all samples dropped since the last one.
	LetterEvery = time.Minute
	// countFor is how long a series counts after its last sample, at least; at most twice that.
	countFor = time.Hour
)

// Reason is a reason for a refusal, below MaxReasons. The caller defines its meaning.
type Reason uint8

// Mark is the quarantine state of a series. The zero Mark is that of a series that is not in quarantine.
//
//	bits 0–7 the reason plus one, 8–15 the period in which it counts, 16–63 the commit of its last dropped sample
type Mark uint64

func newMark(r Reason, period uint8, commit uint64) Mark {
	return Mark(r) + 1 | Mark(period)<<8 | Mark(commit)<<16
}

// Reason returns the reason of a series in quarantine.
func (m Mark) Reason() Reason { return Reason(m&0xff) - 1 }

// Commit returns the commit of the last dropped sample of the series.
func (m Mark) Commit() uint64 { return uint64(m >> 16) }

func (m Mark) period() uint8 { return uint8(m >> 8) }

// Action is what to do with a sample of a series in quarantine.
type Action uint8

// The actions.
const (
	Drop    Action = iota
	Probe          // send it alone, and pass the answer to Probed
	Release        // the series left quarantine: send it normally
)

// Book is the state of all reasons. NewBook makes one. The caller keeps the marks of the series. Times are relative to
// any fixed moment before the book was made. Not safe for concurrent use.
type Book struct {
	rnd     *rand.Rand
	reasons [MaxReasons]reason
	puts    int // how many reasons have series in quarantine
	known   int // how many reasons are known
}

type reason struct {
	alone   [knownFrom]uint64 // series that were refused alone
	refused int               // how many of alone are set

	active      bool // it has series in quarantine
	count       int  // series met in this period
	before      int  // series met in the previous period
	period      uint8
	periodUntil time.Duration

	next   time.Duration // when a probe is due
	chosen bool          // the sample to probe is chosen
	skip   int           // the probe is the sample after so many others
	drawn  time.Duration // when skip was drawn
	passed int           // samples dropped since then

	releasing bool
	healed    time.Duration // when the probe was accepted
	released  int           // series released since then

	dropped  int // samples without a letter
	letterAt time.Duration
}

// NewBook makes a book. The seed picks the probes.
func NewBook(seed uint64) *Book { return &Book{rnd: rand.New(rand.NewPCG(seed, 1))} }

// Refused records that a sample of a series was refused alone for a reason, with proof.
func (b *Book) Refused(r Reason, series uint64) {
	x := &b.reasons[r]
	if x.refused == knownFrom || slices.Contains(x.alone[:x.refused], series) {
		return
	}
	x.alone[x.refused] = series
	if x.refused++; x.refused == knownFrom {
		b.known++
	}
}

// Known reports whether series that are refused together for the reason may go into quarantine.
func (b *Book) Known(r Reason) bool { return b.reasons[r].refused == knownFrom }

// AnyKnown reports whether any reason is known.
func (b *Book) AnyKnown() bool { return b.known > 0 }

// Any reports whether any series is in quarantine.
func (b *Book) Any() bool { return b.puts > 0 }

// Has reports whether any series is in quarantine for the reason.
func (b *Book) Has(r Reason) bool { return b.reasons[r].active }

// Put puts a series into quarantine and returns its mark. The caller drops a sample of the series in that commit.
func (b *Book) Put(r Reason, commit uint64, now time.Duration) Mark {
	x := &b.reasons[r]
	if !x.active {
		x.active, x.periodUntil, x.next = true, now+countFor, now+ProbeEvery
		b.puts++
	}
	b.turn(x, now)
	x.count++
	return newMark(r, x.period, commit)
}

// Dropped counts samples dropped when their series went into quarantine.
func (b *Book) Dropped(r Reason, n int) { b.reasons[r].dropped += n }

// Meet returns the action for a sample of a series with the mark m, and the series' new mark.
func (b *Book) Meet(m Mark, commit uint64, now time.Duration) (Mark, Action) {
	x := &b.reasons[m.Reason()]
	b.turn(x, now)
	if m.period() != x.period || !x.active {
		x.count++
		if !x.active { // all of its series were gone, and one returns
			x.active, x.periodUntil, x.next = true, now+countFor, now+ProbeEvery
			b.puts++
		}
		m = newMark(m.Reason(), x.period, m.Commit())
	}
	if x.releasing {
		if x.released < 1<<min(int((now-x.healed)/time.Second), bits.UintSize-2) {
			x.released++
			b.leave(x)
			return 0, Release
		}
	} else if now >= x.next {
		if !x.chosen {
			x.chosen, x.skip, x.drawn, x.passed = true, b.rnd.IntN(x.size()), now, 0
		} else if now-x.drawn >= ProbeEvery { // many of the series that count have ended: draw among those that go on
			x.skip, x.drawn, x.passed = min(x.skip, b.rnd.IntN(max(x.passed, 1))), now, 0
		}
		if x.skip == 0 {
			x.next, x.chosen = now+ProbeEvery, false
			return m, Probe
		}
		x.skip--
		x.passed++
	}
	x.dropped++
	return newMark(m.Reason(), x.period, max(m.Commit(), commit)), Drop
}

// Unsure drops a sample that may be stored already, and so cannot be a probe, and returns the new mark of its series. The sample counts for a letter
// unless the mark shows that it was dropped before: a window that was discarded is read again, but may not have processed all of its samples.
func (b *Book) Unsure(m Mark, commit uint64) Mark {
	if commit <= m.Commit() {
		return m
	}
	b.reasons[m.Reason()].dropped++
	return newMark(m.Reason(), m.period(), commit)
}

// Probed takes the result of a probe. If the probe was accepted, its series is released; else the sample is dropped.
func (b *Book) Probed(m Mark, commit uint64, taken bool, now time.Duration) Mark {
	x := &b.reasons[m.Reason()]
	if taken {
		x.releasing, x.healed, x.released = true, max(now, 1), 0
		b.leave(x)
		return 0
	}
	x.next = max(x.next, now+ProbeEvery)
	x.dropped++
	return newMark(m.Reason(), m.period(), max(m.Commit(), commit))
}

// Stop ends the release for a reason, after series outside quarantine were refused for it. The next release needs another accepted probe.
func (b *Book) Stop(r Reason, now time.Duration) {
	if x := &b.reasons[r]; x.releasing {
		x.releasing, x.next = false, now+ProbeEvery
	}
}

// leave counts one series less. When the last one leaves, the reason is no longer known.
func (b *Book) leave(x *reason) {
	x.count, x.before = max(x.count-1, 0), max(x.before-1, 0)
	if x.size() == 0 {
		b.end(x)
	}
}

// end resets a reason, but keeps the count for its next letter.
func (b *Book) end(x *reason) {
	if x.active {
		b.puts--
	}
	if x.refused == knownFrom {
		b.known--
	}
	*x = reason{period: x.period + 1, healed: x.healed, dropped: x.dropped, letterAt: x.letterAt}
}

// turn begins a new period when the present one is over: series without a sample in two periods are gone.
func (b *Book) turn(x *reason, now time.Duration) {
	if !x.active || now < x.periodUntil {
		return
	}
	x.before, x.count, x.period = x.count, 0, x.period+1
	x.periodUntil = now + countFor
}

func (x *reason) size() int { return max(x.count, x.before) }

// Letters returns, for each reason whose letter is due, the number of samples that it stands for. With all, every letter is due.
func (b *Book) Letters(now time.Duration, all bool) map[Reason]int {
	var due map[Reason]int
	for r := range b.reasons {
		x := &b.reasons[r]
		if x.dropped == 0 || !all && now < x.letterAt {
			continue
		}
		if due == nil {
			due = map[Reason]int{}
		}
		due[Reason(r)] = x.dropped
		x.dropped, x.letterAt = 0, now+LetterEvery
	}
	return due
}

// Counts returns how many series are in quarantine for each reason that has any. It resets reasons whose series are all gone.
func (b *Book) Counts(now time.Duration) map[Reason]int {
	counts := map[Reason]int{}
	for r := range b.reasons {
		x := &b.reasons[r]
		if !x.active {
			continue
		}
		b.turn(x, now)
		if x.size() == 0 {
			b.end(x)
			continue
		}
		counts[Reason(r)] = x.size()
	}
	return counts
}

// Trial finds out whether series that were refused together for a known reason are all refused for it: some of them,
// chosen at random, are sent alone.
type Trial struct {
	ask  []int
	fail bool
}

// Try begins a trial of n series, which were refused for a reason.
func (b *Book) Try(r Reason, n int, now time.Duration) *Trial {
	most := witnesses
	if x := &b.reasons[r]; now < settleFor || x.healed > 0 && now-x.healed < settleFor {
		most = manyWitnesses
	}
	return &Trial{ask: b.rnd.Perm(n)[:min(n, most)]}
}

// TryDoubted begins a trial of n series whose samples may be stored already and were not sent together.
func (b *Book) TryDoubted(n int) *Trial { return &Trial{ask: b.rnd.Perm(n)[:min(n, manyWitnesses)]} }

// Next returns the next series to send alone, or false at the end.
func (t *Trial) Next() (i int, ok bool) {
	if t.fail || len(t.ask) == 0 {
		return 0, false
	}
	i, t.ask = t.ask[0], t.ask[1:]
	return i, true
}

// Tell takes the result of the series that Next returned: refused is set if it was refused for the same reason.
func (t *Trial) Tell(refused bool) { t.fail = t.fail || !refused }

// Passed reports whether all series of the trial were refused.
func (t *Trial) Passed() bool { return !t.fail && len(t.ask) == 0 }
