package tenant

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
	"hwsagent/wal/queue"
)

// Options configure a [Discovery]. Only the logger is optional.
type Options struct {
	Config         config.Config // the entry as it was written
	ExternalLabels labels.Labels
	Source         Source
	Registry       *Registry

	// Enroll makes a target for a tenant that gets all samples after a mark. When err is nil,
	// the target's position in the log is durable. before is the number of the commit before
	// the target's first.
	Enroll func(id string, after wal.Mark) (before uint64, err error)

	// Release removes the target of an idle tenant, whose last sample came in the commit last,
	// if all samples up to that commit have their final outcome, at the default target as well. Then it
	// calls [Registry.Forget].
	Release func(id string, last uint64)

	Logger *slog.Logger // nil: none
}

// Source is the log as a Discovery reads it, from the default target's savepoint on.
// *wal.Reader implements it, see [wal.Log.Scout].
type Source interface {
	Next(ctx context.Context) (*wal.Entry, error) // blocks until there is a commit; the entry is valid until the next call
	Advance(to wal.Mark, outcome queue.Outcome)   // moves the savepoint to a mark
	Savepoint() queue.Savepoint                   // including changes that are not durable yet
	Head() wal.Mark                               // the last commit in the log
}

// Discovery reads the log for an entry with tenants and delivers no samples. Before it finishes a
// commit, each tenant with a sample in it has either a target whose position is durable, or the
// decision that it gets none. The default target reads behind the discovery; the
// tenants' own targets need not. For one goroutine.
type Discovery struct {
	o      Options
	log    *slog.Logger
	labels *config.Relabeler
	seen   []discovered           // by wal.Series.Slot
	last   map[*Tenant]lastSample // of each tenant that was not forgotten
	logged int                    // number of label values without a target that were logged
	review time.Time              // when to look for idle tenants next
}

// discovered is the tenant of a series.
type discovered struct {
	from *wal.Series
	of   *Tenant // nil: the series belongs to the default target
}

// lastSample records when the last sample of a tenant came.
type lastSample struct {
	commit uint64
	at     time.Time
}

// The pause after an error, and the interval between checks for idle tenants.
const (
	retryAfter  = time.Second
	reviewEvery = time.Minute
)

// NewDiscovery makes a discovery.
func NewDiscovery(o Options) *Discovery {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	now := time.Now()
	s := &Discovery{
		o: o, log: o.Logger.With(slog.String("target", o.Config.TargetName())),
		labels: config.NewRelabeler(o.ExternalLabels, o.Config.WriteRelabelConfigs),
		last:   map[*Tenant]lastSample{},
		review: now.Add(reviewEvery),
	}
	head := o.Source.Head().Commit
	for _, id := range o.Registry.Known() {
		s.last[o.Registry.find(id)] = lastSample{head, now} // the real time is unknown
	}
	return s
}

// Run reads until ctx ends or the log is closed, or the entry is no longer configured.
func (s *Discovery) Run(ctx context.Context) {
	sp := s.o.Source.Savepoint()
	before := sp.Acked()
	s.o.Registry.Pass(before.Commit)
	for {
		e, err := s.o.Source.Next(ctx)
		if err != nil {
			return // ctx ended, or the log was closed
		}
		began := time.Now()
		for failed := false; ; failed = true {
			err := s.discoverAll(e, before)
			if err == nil {
				if failed {
					s.sawNothing(time.Since(began))
				}
				break
			}
			if !failed {
				s.log.Error("Cannot make a target for a new tenant; its samples stay in the log, and those of no tenant wait, until that works", slog.Any("err", err))
			}
			if errors.Is(err, wal.ErrNoTarget) || !pause(ctx, retryAfter) {
				return // the entry is no longer configured
			}
		}
		before = e.End
		s.o.Registry.Pass(e.End.Commit)
		s.o.Source.Advance(e.End, queue.Outcome{Filtered: e.Count()})
		if now := time.Now(); !now.Before(s.review) {
			s.review = now.Add(reviewEvery)
			s.forgetIdle(now)
		}
	}
}

// discoverAll makes sure that each tenant in the entry has a target or is refused one. before is the
// end of the previous entry.
func (s *Discovery) discoverAll(e *wal.Entry, before wal.Mark) error {
	now := time.Now()
	s.end(e.Ended)
	for i := range e.Samples {
		if err := s.discover(e.Samples[i].Series, e, before, now); err != nil {
			return err
		}
	}
	for i := range e.Histograms {
		if err := s.discover(e.Histograms[i].Series, e, before, now); err != nil {
			return err
		}
	}
	return nil
}

func (s *Discovery) discover(series *wal.Series, e *wal.Entry, before wal.Mark, now time.Time) error {
	o := s.of(series)
	if o == nil || s.last[o].commit == e.End.Commit {
		return nil
	}
	if o.from.Load() == 0 {
		if err := s.register(o, before); err != nil {
			return err
		}
	}
	s.last[o] = lastSample{e.End.Commit, now}
	return nil
}

// of returns the tenant of a series, nil for the default target.
func (s *Discovery) of(series *wal.Series) *Tenant {
	for series.Slot() >= len(s.seen) {
		s.seen = append(s.seen, discovered{})
	}
	k := &s.seen[series.Slot()]
	if k.from != series || k.of != nil && k.of.gone.Load() {
		*k = discovered{from: series}
		if final := s.labels.Apply(series.Labels()); final != nil {
			k.of = s.o.Registry.find(final.Get(s.o.Config.Target.Tenant.Label))
		}
	}
	return k.of
}

// end forgets series that the log does not use any more.
func (s *Discovery) end(series []*wal.Series) {
	for _, x := range series {
		if x.Slot() < len(s.seen) && s.seen[x.Slot()].from == x {
			s.seen[x.Slot()] = discovered{}
		}
	}
}

// register gives a tenant its target if the limit allows it.
func (s *Discovery) register(o *Tenant, before wal.Mark) error {
	if why := s.o.Registry.full(); why != "" {
		if _, known := s.last[o]; !known && s.logged < maxListed {
			s.logged++
			s.log.Warn("A tenant gets no target of its own", slog.String("tenant", o.id), slog.String("why", why),
				slog.String("default", s.o.Config.Target.Tenant.Default))
		}
		return nil
	}
	start, err := s.o.Enroll(o.id, before)
	if err != nil {
		return err
	}
	s.o.Registry.registered(o, start)
	s.log.Info("A new tenant has a target", slog.String("tenant", o.id))
	return nil
}

// sawNothing records that the discovery stood still for d: that it saw no sample of a tenant meanwhile does not make the tenant idle.
func (s *Discovery) sawNothing(d time.Duration) {
	now := time.Now()
	for o, seen := range s.last {
		at := seen.at.Add(d)
		if at.After(now) {
			at = now
		}
		s.last[o] = lastSample{seen.commit, at}
	}
}

// forgetIdle removes tenants without samples for longer than forget_after.
func (s *Discovery) forgetIdle(now time.Time) {
	after := time.Duration(s.o.Config.Target.Tenant.ForgetAfter)
	if after <= 0 {
		return
	}
	for _, o := range s.o.Registry.strangers() { // the default target, which reads behind, may have met one that was forgotten
		if _, known := s.last[o]; !known {
			s.last[o] = lastSample{at: now}
		}
	}
	for _, o := range slices.Collect(maps.Keys(s.last)) {
		seen := s.last[o]
		switch {
		case now.Sub(seen.at) < after:
			continue
		case o.from.Load() != 0:
			s.o.Release(o.id, seen.commit)
		default:
			s.o.Registry.Forget(o.id)
		}
		if o.gone.Load() {
			s.log.Info("A tenant of which nothing has come for long was forgotten", slog.String("tenant", o.id))
			delete(s.last, o)
		}
	}
}

// pause waits for d; it returns false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
