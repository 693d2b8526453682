package wal

import "slices"

// maxRanges bounds the ranges of a savepoint, and so the number of outages before the backlog
// of the first is delivered. After a further outage, Split does nothing.
const maxRanges = 16

// Range is a stretch of the log whose samples all have a final outcome for a
// target: everything after From up to and including To.
type Range struct {
	From, To Mark

	// High and Shards describe how much of the gap between To and the next range was sent, as
	// [Savepoint.High] and [Savepoint.Shards] do after the last range. In the last range they are zero.
	High   Mark
	Shards int
}

// Savepoint is the durable position of one target in the log.
type Savepoint struct {
	// Start is where the target began; its ledger counts from there.
	Start Mark

	// Done lists the ranges of samples with a final outcome, oldest first, without overlaps.
	// In-order delivery has at most one range, from Start to the acknowledged mark. A target
	// that gets its newest data first has more: the gaps between them are its backlog.
	Done []Range

	// High is the furthest mark up to which samples may have been sent. It is durable before
	// later samples are sent. So after a crash, only the samples after Last up to High, and
	// those up to High of each range, may already be stored at the receiver.
	High Mark

	// Shards is the greatest number of shards that sent samples between Last and High, a power
	// of two; 0 if unknown. Each shard sent a prefix of its samples.
	Shards int

	// Outcome counts the samples of Done.
	//
	// Invariant: Outcome.Sum() = Σ (To.Total - From.Total) over Done.
	Outcome Outcome

	// Control is data of the sender, MaxControl bytes at most. The log does not interpret it.
	Control []byte
}

// Acked is the mark up to which all samples since Start have a final outcome.
func (s *Savepoint) Acked() Mark {
	if len(s.Done) == 0 || s.Done[0].From.Commit != s.Start.Commit {
		return s.Start
	}
	return s.Done[0].To
}

// Last is the mark after which no sample has a final outcome. Without a backlog it equals Acked.
func (s *Savepoint) Last() Mark {
	if n := len(s.Done); n > 0 {
		return s.Done[n-1].To
	}
	return s.Start
}

// gap returns the oldest stretch without final outcomes that is followed by samples with
// one: after from, up to and including to.
func (s *Savepoint) gap() (from, to Mark, ok bool) {
	if len(s.Done) < 2 {
		return Mark{}, Mark{}, false
	}
	return s.Done[0].To, s.Done[1].From, true
}

// missed is the number of samples in the gaps.
func (s *Savepoint) missed() uint64 { return s.Last().Total - s.Start.Total - s.Settled() }

// open returns all stretches without final outcomes up to a mark, oldest first.
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

// Settled is the number of samples with a final outcome, computed from the marks.
func (s *Savepoint) Settled() uint64 {
	var n uint64
	for _, r := range s.Done {
		n += r.To.Total - r.From.Total
	}
	return n
}

// split leaves the samples between Last and a later mark to the backlog: Last becomes that
// mark. It does nothing and returns false if samples beyond the mark may have been sent, or
// if there are too many ranges.
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

// settle marks everything up to and including end as done. It returns the number of samples
// that this adds; the caller counts their outcomes.
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
			// end is where a power cut took the last commits, some of which had been sent: the
			// total of end does not count them.
			joined.To.Total = r.To.Total
		}
	}
	s.Done = append(append(s.Done[:0], joined), rest...)
	if s.High.Commit < end.Commit {
		s.High = end
	}
	return s.Settled() - before
}

// settleLast marks everything between Last and end as done, and leaves the gaps open.
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

// reserveGap records that samples of the oldest gap up to high may have been sent. It returns
// false if that is known, or if high is not in that gap, because the log has dropped it.
func (s *Savepoint) reserveGap(high Mark) bool {
	from, to, ok := s.gap()
	if !ok || high.Commit <= max(from.Commit, s.Done[0].High.Commit) || high.Commit > to.Commit {
		return false
	}
	s.Done[0].High = high
	return true
}

// doubtHigh handles the possible loss of a newer savepoint: all samples up to head without a
// final outcome may have been sent.
func (s *Savepoint) doubtHigh(head Mark) {
	for i := range len(s.Done) - 1 {
		s.Done[i].High, s.Done[i].Shards = s.Done[i+1].From, 0
	}
	if s.High.Commit < head.Commit {
		s.High = head
	}
}

// clone returns a copy with its own Done.
func (s *Savepoint) clone() Savepoint {
	c := *s
	c.Done = slices.Clone(s.Done)
	return c
}
