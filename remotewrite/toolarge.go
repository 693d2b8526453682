package remotewrite

import (
	"context"

	"hwsagent/wal"
)

// tooLargeOne is the sample that was called too large alone last.
type tooLargeOne struct {
	key    sampleKey
	doubts int // see certain
}

// tooLargeAlone gives up a sample that is too large even alone, if the target takes what it
// took before, or has something else to say to an empty write before it took anything.
// Otherwise somebody calls everything too large: the target is held, and done is false.
func (s *shard) tooLargeAlone(ctx context.Context, one []point, a Answer) (done bool, err error) {
	clean := false
	if s.hasGood {
		is := tooLargeOne{key: sampleKey{one[0].series.hash, one[0].t}}
		if was := s.q.large.Load(); was != nil && was.key == is.key {
			is.doubts = was.doubts
		}
		if clean, err = s.certain(ctx, true, &is.doubts); err != nil {
			return false, err
		}
		s.q.large.Store(&is)
	}
	if !clean {
		p, err := s.q.enter(ctx)
		if err != nil {
			return false, err
		}
		if !s.hasGood {
			v := Classify(s.q.sendEmpty(s.sending, s.q.proto.forEmpty(p.test)), Policy{RetryOnRateLimit: true})
			clean = v != Retry && v != Split
		}
		if !clean {
			s.q.gate.refused(p, a.String())
			return false, nil
		}
		s.q.gate.release(p)
	}
	s.q.forgiveBatch()
	s.bury(one, a, wal.Rejected)
	return true, nil
}
