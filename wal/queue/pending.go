package queue

import "hwsagent/wal/internal/segment"

// BacklogEnd returns the beginning of the segment to which a target with this savepoint must
// move so that at most limit bytes are pending up to head, or as few as possible. ok is false if the
// target need not or cannot move.
func (s *Savepoint) BacklogEnd(segments []segment.Info, head segment.Mark, limit int64) (end segment.Mark, ok bool) {
	sp := s.Clone()
	waits := sp.PendingBytes(segments, head)
	for _, info := range segments {
		if waits <= limit {
			break
		}
		acked := sp.Acked()
		if info.Number <= acked.Segment || info.Number > head.Segment {
			continue
		}
		if !info.Known() || info.Header.Commit <= acked.Commit {
			continue // the header is damaged or not after acked: the target cannot move to this segment
		}
		end, ok = info.Header.Before(), true
		sp.Settle(end)
		waits = sp.PendingBytes(segments, head)
	}
	return end, ok
}

// PendingBytes is the number of bytes in the segments that hold samples without a final outcome, up to head.
func (s *Savepoint) PendingBytes(segments []segment.Info, head segment.Mark) int64 {
	var n int64
	for _, r := range s.Open(head) {
		n += BytesAfter(segments, r.From, r.To)
		if r.To.Commit < head.Commit {
			n -= BytesAfter(segments, r.To, r.To)
		}
	}
	return max(n, 0)
}

// BytesAfter is the number of bytes in the segments after from, up to the end of the segment
// that contains end.
func BytesAfter(segments []segment.Info, from, end segment.Mark) int64 {
	var n int64
	for _, s := range segments {
		switch {
		case s.Number < from.Segment || s.Number > end.Segment:
		case s.Number == from.Segment:
			n += max(0, s.End-from.Offset)
		default:
			n += s.End
		}
	}
	return n
}
