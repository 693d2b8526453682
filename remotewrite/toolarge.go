package remotewrite

import (
	"context"

	"hwsagent/remotewrite/client"
	"hwsagent/wal"
)

// tooLargeAlone gives up a sample that is too large even alone, if contrast shows that it is. Otherwise
// everything may be called too large: done is false, and the parcel has to be tried again.
func (s *shard) tooLargeAlone(ctx context.Context, l *parcel, a client.Answer) (done bool, err error) {
	c, err := s.contrast(ctx, l, a)
	if err != nil || c.blame == blameTarget {
		return false, err
	}
	s.q.restoreBatch()
	if c.blame == blameSamples {
		s.bury(l.points, c.answer, wal.Rejected)
	}
	return true, nil
}
