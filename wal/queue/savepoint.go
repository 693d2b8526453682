package queue

import (
	"slices"

	"hwsagent/wal/internal/segment"
)

// MaxRanges bounds the ranges of a savepoint, and so the number of outages before the backlog
// of the first is delivered. After a further outage, Split does nothing.
const MaxRanges = 16

// Range is a stretch of the log whose samples all have a final outcome for a
// target: everything after From up to and including To.
type Range struct {
	From, To segment.Mark

	// High says how much of the gap between To and the next range may have been sent, as [Savepoint.High] does after the last range.
	// In the last range it is zero.
	High segment.Mark
}

// Savepoint is the durable position of one target in the log.
type Savepoint struct {
	// Start is where the target began; its ledger counts from there.
	Start segment.Mark

	// Done lists the ranges of samples with a final outcome, oldest first, without overlaps: neither commits nor totals decrease.
	// In-order delivery has at most one range, from Start to the acknowledged mark. A target
	// that gets its newest data first has more: the gaps between them are its backlog.
	Done []Range

	// High is the furthest mark up to which samples may have been sent. It is written before
	// later samples are sent. So after a kill, only the samples after Last up to High, and
	// those up to High of each range, may already be stored at the receiver.
	High segment.Mark

	// Outcome counts the samples of Done.
	//
	// Invariant: Outcome.Sum() = Σ (To.Total - From.Total) over Done.
	Outcome Outcome
}

// Acked is the mark up to which all samples since Start have a final outcome.
func (s *Savepoint) Acked() segment.Mark {
	if len(s.Done) == 0 || s.Done[0].From.Commit != s.Start.Commit {
		return s.Start
	}
	return s.Done[0].To
}

// Last is the mark after which no sample has a final outcome. Without a backlog it equals Acked.
func (s *Savepoint) Last() segment.Mark {
	if n := len(s.Done); n > 0 {
		return s.Done[n-1].To
	}
	return s.Start
}

// Gap returns the oldest stretch without final outcomes that is followed by samples with
// one: after from, up to and including to.
func (s *Savepoint) Gap() (from, to segment.Mark, ok bool) {
	if len(s.Done) < 2 {
		return segment.Mark{}, segment.Mark{}, false
	}
	return s.Done[0].To, s.Done[1].From, true
}

// missed is the number of samples in the gaps.
func (s *Savepoint) missed() uint64 { return s.Last().Total - s.Start.Total - s.Settled() }

// Open returns all stretches without final outcomes up to a mark, oldest first.
func (s *Savepoint) Open(head segment.Mark) []Range {
	var open []Range
	add := func(from, to segment.Mark) {
		if to.Commit > head.Commit {
			to = head
		}
		if from.Commit < to.Commit {
			open = append(open, Range{From: from, To: to})
		}
	}
	for i := 1; i < len(s.Done); i++ {
		add(s.Done[i-1].To, s.Done[i].From)
	}
	add(s.Last(), head)
	return open
}

// Settled is the number of samples with a final outcome, computed from the marks.
func (s *Savepoint) Settled() uint64 {
	var n uint64
	for _, r := range s.Done {
		n += r.To.Total - r.From.Total
	}
	return n
}

// Split leaves the samples between Last and a later mark to the backlog: Last becomes that
// mark. It does nothing and returns false if samples beyond the mark may have been sent, or
// if there are too many ranges.
func (s *Savepoint) Split(at segment.Mark) bool {
	if at.Commit <= s.Last().Commit || at.Commit < s.High.Commit || at.Total < s.Last().Total || len(s.Done) >= MaxRanges {
		return false
	}
	if len(s.Done) == 0 {
		s.Done = []Range{{From: s.Start, To: s.Start}}
	}
	last := &s.Done[len(s.Done)-1]
	last.High = s.High
	s.Done = append(s.Done, Range{From: at, To: at})
	s.High = at
	return true
}

// Settle marks everything up to and including end as done. It returns the number of samples
// that this adds; the caller counts their outcomes.
func (s *Savepoint) Settle(end segment.Mark) uint64 {
	if end.Commit <= s.Acked().Commit {
		return 0
	}
	end.Total = max(end.Total, s.Acked().Total)
	before := s.Settled()
	joined := Range{From: s.Start, To: end}
	var rest []Range
	for _, r := range s.Done {
		if r.From.Commit > end.Commit {
			rest = append(rest, r)
			continue
		}
		joined.High = r.High // of the gap after it
		switch {
		case r.To.Commit > end.Commit:
			joined.To = r.To
		case r.To.Total > joined.To.Total:
			// end is where a power cut took the last commits, some of which had been sent: the
			// total of end does not count them.
			joined.To.Total = r.To.Total
		}
	}
	if len(rest) > 0 {
		// A power cut may bring back a commit that was refused, in place of a smaller one: the gap had no more samples than before.
		joined.To.Total = min(joined.To.Total, rest[0].From.Total)
	}
	s.Done = append(append(s.Done[:0], joined), rest...)
	if s.High.Commit < end.Commit {
		s.High = end
	}
	return s.Settled() - before
}

// SettleLast marks everything between Last and end as done, and leaves the gaps open.
func (s *Savepoint) SettleLast(end segment.Mark) uint64 {
	n := len(s.Done)
	if n < 2 {
		return s.Settle(end)
	}
	last := &s.Done[n-1].To
	if end.Commit <= last.Commit {
		return 0
	}
	end.Total = max(end.Total, last.Total)
	added := end.Total - last.Total
	*last = end
	if s.High.Commit < end.Commit {
		s.High = end
	}
	return added
}

// ReserveGap records that samples of the oldest gap up to high may have been sent. It returns
// false if that is known, or if high is not in that gap, because the log has dropped it.
func (s *Savepoint) ReserveGap(high segment.Mark) bool {
	from, to, ok := s.Gap()
	if !ok || high.Commit <= max(from.Commit, s.Done[0].High.Commit) || high.Commit > to.Commit {
		return false
	}
	s.Done[0].High = high
	return true
}

// DoubtHigh handles the possible loss of a newer savepoint: all samples up to head without a
// final outcome may have been sent.
func (s *Savepoint) DoubtHigh(head segment.Mark) {
	for i := range len(s.Done) - 1 {
		s.Done[i].High = s.Done[i+1].From
	}
	if s.High.Commit < head.Commit {
		s.High = head
	}
}

// Clone returns a copy with its own Done.
func (s *Savepoint) Clone() Savepoint {
	c := *s
	c.Done = slices.Clone(s.Done)
	return c
}

// Lane is one of the two streams of a queue.
type Lane uint8

const (
	Live    Lane = iota // after the last sample with a final outcome
	Backlog             // the oldest gap

	NumLanes // the number of lanes; not a lane
)

// Reach is the progress of a lane. All samples up to Acked have a final outcome. The lane
// stops at End; zero means that it has no end. High is as in [Savepoint]. Missed
// counts the samples without a final outcome in this gap and those after it.
type Reach struct {
	Acked, End, High segment.Mark
	Missed           uint64
}

// Reach returns the progress of a lane; ok is false for the backlog if there is none.
func (s *Savepoint) Reach(l Lane) (r Reach, ok bool) {
	if l == Live {
		return Reach{Acked: s.Last(), High: s.High}, true
	}
	if r.Acked, r.End, ok = s.Gap(); ok {
		r.High, r.Missed = s.Done[0].High, s.missed()
	}
	return r, ok
}

// Ledger is the ledger for that head of the log.
func (s *Savepoint) Ledger(head segment.Mark) Ledger {
	l := Ledger{Outcome: s.Outcome, Appended: max(head.Total, s.Last().Total) - s.Start.Total}
	l.Pending = l.Appended - min(l.Appended, s.Settled())
	return l
}
