// Package progress decides how far a target has settled the log. It takes the entries of the log in order and the
// outcomes of their samples in any order, and returns each entry when all samples up to its end have an outcome.
package progress

import (
	"fmt"
	"math"

	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// Tracker tracks the window of a queue: the part of the log that it has read and not finished.
// Entries enter in log order; their samples get outcomes in any order;
// entries leave in log order, each when all of its samples and all entries before it
// have an outcome. So a savepoint that follows the leaving entries never
// passes a sample without an outcome.
//
// A Tracker is a plain value: no I/O, no clock, no goroutine. Not safe for concurrent
// use. New makes one.
//
//	read     Begin ──>  │ seq 7 │ seq 8 │ seq 9 │  ──> Pop   savepoint
//	                        └── Done, any order
type Tracker struct {
	ring []entry // power of two long
	head uint64  // sequence number of the oldest entry in the window
	next uint64  // sequence number of the next entry to begin

	// open counts the samples of the window without an outcome.
	//
	// Invariant: open = Σ ring[i].open for head <= i < next.
	open uint64

	// span counts all samples of the window.
	//
	// Invariant: span = Σ ring[i].span for head <= i < next; open <= span.
	span uint64

	maxEntries int
	maxSamples int
	maxSpan    int
}

// entry is one entry of the window.
type entry struct {
	mark wal.Mark
	open uint64 // samples without an outcome
	span uint64 // all samples
	out  queue.Outcome
}

// New makes an empty window that is full at maxEntries entries or maxSamples
// samples without an outcome. Both bounds are at least 1.
func New(maxEntries, maxSamples int) *Tracker {
	return &Tracker{
		ring: make([]entry, 16),
		head: 1, next: 1,
		maxEntries: max(maxEntries, 1),
		maxSamples: max(maxSamples, 1),
		maxSpan:    math.MaxInt,
	}
}

// Begin adds the entry that ends at mark: samples of it still need an outcome, and
// missing are the samples lost between the previous entry and this one. It returns the
// entry's sequence number. The caller must check Full before it reads, because Begin
// does not; so a window exceeds its bound by at most one entry.
func (p *Tracker) Begin(mark wal.Mark, samples uint64, missing queue.Outcome) (seq uint64) {
	if p.next-p.head == uint64(len(p.ring)) {
		p.grow()
	}
	seq = p.next
	p.next++
	p.open += samples
	p.span += samples
	*p.at(seq) = entry{mark: mark, open: samples, span: samples, out: missing}
	return seq
}

// Done gives samples of the entry seq their final outcome. It refuses an outcome for an
// entry outside the window, or for more samples than are open: the savepoint would
// stop being true.
func (p *Tracker) Done(seq uint64, o queue.Outcome) error {
	n := o.Sum()
	if seq < p.head || seq >= p.next {
		return fmt.Errorf("give entry %d an outcome: it is not in the window %s", seq, p)
	}
	e := p.at(seq)
	if n > e.open {
		return fmt.Errorf("give %d samples of entry %d an outcome: %d are open", n, seq, e.open)
	}
	e.open -= n
	p.open -= n
	e.out.Add(o)
	return nil
}

// Pop removes the oldest entry if it is finished, and returns its mark and the outcomes
// of its samples. It returns one entry at a time, not a sum: the log may have
// dropped some of these entries meanwhile, and skips them.
func (p *Tracker) Pop() (wal.Mark, queue.Outcome, bool) {
	if p.head == p.next {
		return wal.Mark{}, queue.Outcome{}, false
	}
	e := p.at(p.head)
	if e.open > 0 {
		return wal.Mark{}, queue.Outcome{}, false
	}
	p.head++
	p.span -= e.span
	return e.mark, e.out, true
}

// Mark returns the end of the entry seq, and false if the entry is not in the window.
func (p *Tracker) Mark(seq uint64) (wal.Mark, bool) {
	if seq < p.head || seq >= p.next {
		return wal.Mark{}, false
	}
	return p.at(seq).mark, true
}

// Newest returns the sequence number of the newest entry ever begun, 0 if there is none.
func (p *Tracker) Newest() uint64 { return p.next - 1 }

// SetLimits changes the bounds on samples without an outcome, and on all samples from
// the oldest entry to the newest. The second bound limits how far finished samples may
// run ahead of unfinished ones.
func (p *Tracker) SetLimits(maxSamples, maxSpan int) {
	p.maxSamples, p.maxSpan = max(maxSamples, 1), max(maxSpan, 1)
}

// Full reports whether no further entry should begin now. A window without open
// samples is never full.
func (p *Tracker) Full() bool {
	return p.open >= uint64(p.maxSamples) ||
		p.open > 0 && (p.span >= uint64(p.maxSpan) || p.Entries() >= p.maxEntries)
}

// Empty reports whether every entry has left.
func (p *Tracker) Empty() bool { return p.head == p.next }

// Entries returns the number of entries in the window.
func (p *Tracker) Entries() int { return int(p.next - p.head) }

// Open returns the number of samples without an outcome.
func (p *Tracker) Open() uint64 { return p.open }

// String shows the window, for people and tests: the sequence numbers, and how many
// samples are open.
func (p *Tracker) String() string {
	if p.Empty() {
		return fmt.Sprintf("empty, next %d", p.next)
	}
	full := ""
	if p.Full() {
		full = " full"
	}
	return fmt.Sprintf("%d..%d open=%d/%d%s", p.head, p.next-1, p.open, p.maxSamples, full)
}

func (p *Tracker) at(seq uint64) *entry { return &p.ring[seq&uint64(len(p.ring)-1)] }

// grow doubles the ring. The ring never shrinks, since a window is bounded.
func (p *Tracker) grow() {
	old := *p
	p.ring = make([]entry, 2*len(old.ring))
	for seq := old.head; seq < old.next; seq++ {
		*p.at(seq) = *old.at(seq)
	}
}
