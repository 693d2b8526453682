package remotewrite

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/config"
	"hwsagent/wal"
)

// ScoutOptions are what a scout is made of. All but the logger are needed.
type ScoutOptions struct {
	Config         config.Config // the entry as it was written
	ExternalLabels labels.Labels
	Source         ScoutSource
	Tenants        *Tenants

	// Enroll makes a target for a tenant that gets everything after that mark. When it
	// returns nil, the target's place in the log is durable. before is the number of the
	// commit before its first.
	Enroll func(id string, after wal.Mark) (before uint64, err error)

	// Release lets the target of a tenant go whose last sample came in the commit last, if
	// everything up to there has its final outcome, at the target of the rest as well, and
	// calls [Tenants.Forget] if it did.
	Release func(id string, last uint64)

	Logger *slog.Logger // nil: none
}

// ScoutSource is the log as a scout reads it, from where the target of the rest is.
// *wal.Reader implements it, see [wal.Log.Scout].
type ScoutSource interface {
	Next(ctx context.Context) (*wal.Entry, error)
	Advance(to wal.Mark, outcome wal.Outcome)
	Savepoint() wal.Savepoint
	Head() wal.Mark
}

// Scout reads the log for an entry with tenants and delivers nothing. Before it is done with
// a commit, each tenant that has a sample there has a target that gets it, durably, or it was
// decided that it gets none. The target of the rest (the default's, and what is nobody's)
// reads behind the scout; those of the tenants need not.
type Scout struct {
	o      ScoutOptions
	log    *slog.Logger
	cache  *seriesCache
	seen   []scouted        // by wal.Series.Slot
	last   map[*owner]sight // of each owner that is not gone
	told   int              // values that the log was told of
	review time.Time        // when it is next looked for tenants that are gone
}

// scouted is whose a series is.
type scouted struct {
	from *wal.Series
	of   *owner // nil: nobody's
}

// sight is when a tenant's sample came last.
type sight struct {
	commit uint64
	at     time.Time
}

// How long a scout waits after an error, and how often it looks for tenants that are gone.
const (
	scoutRetry  = time.Second
	scoutReview = time.Minute
)

// NewScout makes a scout.
func NewScout(o ScoutOptions) *Scout {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	now := time.Now()
	s := &Scout{
		o: o, log: o.Logger.With(slog.String("target", o.Config.TargetName())),
		cache:  newSeriesCache(o.ExternalLabels, o.Config.WriteRelabelConfigs),
		last:   map[*owner]sight{},
		review: now.Add(scoutReview),
	}
	head := o.Source.Head().Commit
	for _, id := range o.Tenants.Known() {
		s.last[o.Tenants.owner(id)] = sight{head, now} // as if: nobody knows
	}
	return s
}

// Run reads until ctx ends or the log is closed.
func (s *Scout) Run(ctx context.Context) {
	sp := s.o.Source.Savepoint()
	before := sp.Acked()
	s.o.Tenants.pass(before.Commit)
	for {
		e, err := s.o.Source.Next(ctx)
		if err != nil {
			return // ctx's end, or the log's
		}
		for failed := false; ; failed = true {
			err := s.look(e, before)
			if err == nil {
				break
			}
			if !failed {
				s.log.Error("Cannot make a target for a new tenant; its samples stay in the log, and those of no tenant wait, until that works", slog.Any("err", err))
			}
			if errors.Is(err, wal.ErrNoTarget) || sleep(ctx, scoutRetry) != nil {
				return // the entry is no longer configured
			}
		}
		before = e.End
		s.o.Tenants.pass(e.End.Commit)
		s.o.Source.Advance(e.End, wal.Outcome{Filtered: e.Count()})
		if now := time.Now(); !now.Before(s.review) {
			s.review = now.Add(scoutReview)
			s.letGo(now)
		}
	}
}

// look makes sure that each tenant in the entry, which follows that mark, has a target or
// gets none.
func (s *Scout) look(e *wal.Entry, before wal.Mark) error {
	now := time.Now()
	for i := range e.Samples {
		if err := s.meet(e.Samples[i].Series, e, before, now); err != nil {
			return err
		}
	}
	for i := range e.Histograms {
		if err := s.meet(e.Histograms[i].Series, e, before, now); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scout) meet(series *wal.Series, e *wal.Entry, before wal.Mark, now time.Time) error {
	o := s.of(series)
	if o == nil || s.last[o].commit == e.End.Commit {
		return nil
	}
	if o.from.Load() == 0 {
		if err := s.welcome(o, before); err != nil {
			return err
		}
	}
	s.last[o] = sight{e.End.Commit, now}
	return nil
}

// of is whose a series is.
func (s *Scout) of(series *wal.Series) *owner {
	for series.Slot >= len(s.seen) {
		s.seen = append(s.seen, scouted{})
	}
	k := &s.seen[series.Slot]
	if k.from != series || k.of != nil && k.of.gone.Load() {
		*k = scouted{from: series}
		if s.cache.relabel(series) {
			k.of = s.o.Tenants.owner(s.cache.builder.Get(s.o.Config.Target.Tenant.Label))
		}
	}
	return k.of
}

// welcome gives a tenant its target if there may be another.
func (s *Scout) welcome(o *owner, before wal.Mark) error {
	if why := s.o.Tenants.full(); why != "" {
		if _, known := s.last[o]; !known && s.told < maxTold {
			s.told++
			s.log.Warn("A tenant gets no target of its own", slog.String("tenant", o.id), slog.String("why", why),
				slog.String("default", s.o.Config.Target.Tenant.Default))
		}
		return nil
	}
	start, err := s.o.Enroll(o.id, before)
	if err != nil {
		return err
	}
	s.o.Tenants.enrolled(o, start)
	s.log.Info("A new tenant has a target", slog.String("tenant", o.id))
	return nil
}

// letGo lets tenants go of which no sample has come for long.
func (s *Scout) letGo(now time.Time) {
	after := time.Duration(s.o.Config.Target.Tenant.ForgetAfter)
	if after <= 0 {
		return
	}
	for _, o := range slices.Collect(maps.Keys(s.last)) {
		seen := s.last[o]
		switch {
		case now.Sub(seen.at) < after:
			continue
		case o.from.Load() != 0:
			s.o.Release(o.id, seen.commit)
		default:
			s.o.Tenants.Forget(o.id)
		}
		if o.gone.Load() {
			s.log.Info("A tenant of which nothing has come for long was forgotten", slog.String("tenant", o.id))
			delete(s.last, o)
		}
	}
}
