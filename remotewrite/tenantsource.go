package remotewrite

import (
	"context"

	"hwsagent/remotewrite/tenant"
	"hwsagent/wal"
)

// afterDiscovery is the source of the default target. It yields a commit only after the discovery of tenants has
// finished it, so that the target of each sample is durably decided.
type afterDiscovery struct {
	Source
	tenants *tenant.Registry
	waiting *wal.Entry // read, but not yielded yet
}

// Next implements [Source].
func (s *afterDiscovery) Next(ctx context.Context) (*wal.Entry, error) {
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
func (s *afterDiscovery) Rewind() {
	s.waiting = nil
	s.Source.Rewind()
}
