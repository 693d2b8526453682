package wal

// Range is a stretch of the log whose samples all have a final outcome for a
// target: everything after From up to and including To.
type Range struct {
	From, To Mark
}

// Savepoint is the durable position of one target in the log.
type Savepoint struct {
	// Start is where the target began; its ledger counts from there.
	Start Mark

	// Done lists what has a final outcome, oldest first, without overlaps. In-order
	// delivery has exactly one range, from Start to the acknowledged mark; a sender
	// that delivers newest data first has more.
	Done []Range

	// High is the furthest mark that may have been sent. It is made durable before
	// anything beyond it is sent, so after a crash exactly the samples after Acked and
	// up to High may already be stored at the receiver.
	High Mark

	// Shards is how many shards at most sent what lies between Acked and High, a power of
	// two; 0 when that is not known. Of each shard's samples a prefix was sent.
	Shards int

	// Outcome counts the samples of Done.
	//
	// Invariant: Outcome.Sum() = Σ (To.Total - From.Total) over Done.
	Outcome Outcome
}

// Acked is the mark up to which everything since Start has a final outcome.
func (s *Savepoint) Acked() Mark {
	if len(s.Done) == 0 || s.Done[0].From.Commit != s.Start.Commit {
		return s.Start
	}
	return s.Done[0].To
}

// Settled is how many samples have a final outcome by the marks.
func (s *Savepoint) Settled() uint64 {
	var n uint64
	for _, r := range s.Done {
		n += r.To.Total - r.From.Total
	}
	return n
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
		switch {
		case r.From.Commit > end.Commit:
			rest = append(rest, r)
		case r.To.Commit > end.Commit:
			joined.To = r.To
		}
	}
	s.Done = append(append(s.Done[:0], joined), rest...)
	if s.High.Commit < end.Commit {
		s.High = end
	}
	return s.Settled() - before
}
