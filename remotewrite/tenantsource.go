package remotewrite

import (
	"context"

	"hwsagent/remotewrite/tenant"
	"hwsagent/wal"
)

// afterScout is the source of the target of the rest: it yields only what the scout is done
// with, so that whose a sample is has been decided, durably.
type afterScout struct {
	Source
	tenants *tenant.Registry
	waiting *wal.Entry // read, and not yielded yet
}

// Next implements [Source].
func (s *afterScout) Next(ctx context.Context) (*wal.Entry, error) {
	if s.waiting == nil {
		e, err := s.Source.Next(ctx)
		if err != nil {
			return nil, err
		}
		s.waiting = e
	}
	e := s.waiting
	if err := s.tenants.Wait(ctx, e.End.Commit); err != nil {
		return nil, err
	}
	s.waiting = nil
	return e, nil
}

// Rewind implements [Source].
func (s *afterScout) Rewind() {
	s.waiting = nil
	s.Source.Rewind()
}
