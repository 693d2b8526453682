package wal

import "slices"

// maxRanges bounds the ranges of a savepoint: so many outages may follow each other before
// the backlog of the first is delivered. After the next one the newest range stays the last.
const maxRanges = 16

// Range is a stretch of the log whose samples all have a final outcome for a
// target: everything after From up to and including To.
type Range struct {
	From, To Mark

	// High and Shards say what was sent of the gap between To and the range that follows, as
	// [Savepoint.High] and [Savepoint.Shards] do behind the last range, in which they are zero.
	High   Mark
	Shards int
}

// Savepoint is the durable position of one target in the log.
type Savepoint struct {
	// Start is where the target began; its ledger counts from there.
	Start Mark

	// Done lists what has a final outcome, oldest first, without overlaps. In-order
	// delivery has at most one range, from Start to the acknowledged mark. A target that gets
	// its newest data first has more: the gaps between them are its backlog.
	Done []Range

	// High is the furthest mark that may have been sent. It is made durable before
	// anything beyond it is sent, so after a crash exactly the samples after Last and
	// up to High may already be stored at the receiver, and those that the ranges say.
	High Mark

	// Shards is how many shards at most sent what lies between Last and High, a power of
	// two; 0 when that is not known. Of each shard's samples a prefix was sent.
	Shards int

	// Outcome counts the samples of Done.
	//
	// Invariant: Outcome.Sum() = Σ (To.Total - From.Total) over Done.
	Outcome Outcome

	// Control is what the sender keeps beside its position, MaxControl bytes at most. The log does not look at it.
	Control []byte
}

// Acked is the mark up to which everything since Start has a final outcome.
func (s *Savepoint) Acked() Mark {
	if len(s.Done) == 0 || s.Done[0].From.Commit != s.Start.Commit {
		return s.Start
	}
	return s.Done[0].To
}

// Last is the mark behind which nothing has a final outcome. Without a backlog that is Acked.
func (s *Savepoint) Last() Mark {
	if n := len(s.Done); n > 0 {
		return s.Done[n-1].To
	}
	return s.Start
}

// gap is the oldest stretch without a final outcome that has one behind it: what lies after
// from, up to and including to.
func (s *Savepoint) gap() (from, to Mark, ok bool) {
	if len(s.Done) < 2 {
		return Mark{}, Mark{}, false
	}
	return s.Done[0].To, s.Done[1].From, true
}

// missed is how many samples lie in the gaps.
func (s *Savepoint) missed() uint64 { return s.Last().Total - s.Start.Total - s.Settled() }

// open are all stretches without a final outcome up to a mark, oldest first.
func (s *Savepoint) open(head Mark) []Range {
	var open []Range
	add := func(from, to Mark) {
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

// Settled is how many samples have a final outcome by the marks.
func (s *Savepoint) Settled() uint64 {
	var n uint64
	for _, r := range s.Done {
		n += r.To.Total - r.From.Total
	}
	return n
}

// split leaves what lies between Last and a later mark to the backlog: from now on Last is
// that mark. It does nothing, and is false, where something beyond the mark may have been
// sent, and where there are too many ranges.
func (s *Savepoint) split(at Mark) bool {
	if at.Commit <= s.Last().Commit || at.Commit < s.High.Commit || at.Total < s.Last().Total || len(s.Done) >= maxRanges {
		return false
	}
	if len(s.Done) == 0 {
		s.Done = []Range{{From: s.Start, To: s.Start}}
	}
	last := &s.Done[len(s.Done)-1]
	last.High, last.Shards = s.High, s.Shards
	s.Done = append(s.Done, Range{From: at, To: at})
	s.High, s.Shards = at, 0
	return true
}

// settle makes everything up to and including end done. It returns how many samples
// that adds; their outcome is the caller's to count.
func (s *Savepoint) settle(end Mark) uint64 {
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
		joined.High, joined.Shards = r.High, r.Shards // of the gap after it
		switch {
		case r.To.Commit > end.Commit:
			joined.To = r.To
		case r.To.Total > joined.To.Total:
			// end is where a power cut has taken the last commits, and some of them had been
			// sent: the total of end counts none of them.
			joined.To.Total = r.To.Total
		}
	}
	s.Done = append(append(s.Done[:0], joined), rest...)
	if s.High.Commit < end.Commit {
		s.High = end
	}
	return s.Settled() - before
}

// settleLast makes everything between Last and end done, and nothing before.
func (s *Savepoint) settleLast(end Mark) uint64 {
	n := len(s.Done)
	if n < 2 {
		return s.settle(end)
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

// reserveGap notes that samples of the oldest gap up to high may have been sent. It is
// false if that is known, or high is not in that gap: the log has let it go.
func (s *Savepoint) reserveGap(high Mark) bool {
	from, to, ok := s.gap()
	if !ok || high.Commit <= max(from.Commit, s.Done[0].High.Commit) || high.Commit > to.Commit {
		return false
	}
	s.Done[0].High = high
	return true
}

// doubtHigh says that a newer savepoint may have been lost: anything up to head that has no
// final outcome may have been sent.
func (s *Savepoint) doubtHigh(head Mark) {
	for i := range len(s.Done) - 1 {
		s.Done[i].High, s.Done[i].Shards = s.Done[i+1].From, 0
	}
	if s.High.Commit < head.Commit {
		s.High = head
	}
}

// clone is a copy that shares nothing.
func (s *Savepoint) clone() Savepoint {
	c := *s
	c.Done = slices.Clone(s.Done)
	return c
}
