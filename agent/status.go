package agent

import (
	"context"
	"slices"
	"time"

	"hwsagent/agent/clock"
	"hwsagent/agent/config"
	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/internal/meter"
	"hwsagent/internal/version"
	"hwsagent/probes"
	"hwsagent/wal"
)

// Status returns a snapshot of the whole agent. Its times are on the wall clock as it is set now, so that an event
// before a step of the clock does not appear to be a year old.
func (a *Agent) Status() status.Status {
	now := time.Now()
	a.mu.Lock()
	cfgStatus, cfg := a.status, a.cfg
	a.mu.Unlock()
	cfgStatus.Underway = a.changes.overdue()
	cfgStatus.LoadedAt, cfgStatus.ReloadedAt = clock.OnWall(now, cfgStatus.LoadedAt), clock.OnWall(now, cfgStatus.ReloadedAt)
	s := status.Status{
		Schema: 1, Version: version.Version, Host: a.hostname, Running: true, Now: now, Started: clock.OnWall(now, a.started),
		Clock:  a.clock.Status(now),
		Config: cfgStatus,
		WAL:    logStatus(a.log.Status(), cfg, a.o.StoragePath, now),
	}
	s.WAL.SamplesPerSec, s.WAL.BytesPerSec = a.appended.PerSecond(), a.written.PerSecond()
	for _, t := range a.targets.All() {
		s.Targets = append(s.Targets, t.Status(a.clock.LastStep(), now))
	}
	s.Targets = append(s.Targets, a.targets.Missing()...)
	for _, o := range a.log.Orphans() {
		if slices.ContainsFunc(s.Targets, func(t status.TargetStatus) bool { return t.Name == o.Name }) {
			continue // it is stopping or starting
		}
		why := "not in the configuration since " + o.Since.Format(time.DateTime)
		if o.Left > 0 {
			why += "; kept for another " + status.Span(o.Left) + " of the agent's running time"
		}
		s.Targets = append(s.Targets, status.TargetStatus{
			Name: o.Name, State: status.StateOrphan, Why: why, PausedSince: a.log.PausedSince(o.Name),
			PendingSamples: o.Ledger.Pending, PendingBytes: o.PendingBytes, Ledger: queues.Ledger(o.Ledger),
		})
	}
	a.events.Outages(now, s.Targets)
	for _, p := range a.runner.Status() {
		s.Probes = append(s.Probes, probeStatus(p, now))
	}
	s.Pull = a.pullStatus(cfg, now)
	s.Inputs, s.Duplicates = inputStatus(a.inputs, now)
	s.Scrape = a.scraper.Status(now)
	for _, r := range a.intake.Status() {
		s.Receivers = append(s.Receivers, receiverStatus(r, now))
	}
	s.Losses = a.events.Account(s)
	status.Bound(s)
	return status.Judge(s)
}

// logStatus describes the log. dir is its directory.
func logStatus(l wal.Status, cfg *config.Config, dir string, now time.Time) status.WALStatus {
	s := status.WALStatus{
		Dir: dir, Sync: cfg.WAL.Sync.String(),
		Segments: l.Segments, LastSegment: l.Head.Segment, FirstSegment: l.First,
		Bytes: l.Bytes, MaxBytes: l.MaxBytes, FreeBytes: l.Free, MinFreeBytes: l.MinFree, OnFull: string(l.OnFull),
		WarnFullSeconds: time.Duration(cfg.WAL.WarnFullWithin).Seconds(),
		Appended:        l.Appended, Refused: l.Refused, Series: l.Series,
	}
	s.LowSince = clock.OnWall(now, l.LowSince)
	if l.Err != nil {
		s.Error, s.ErrorSince = l.Err.Error(), clock.OnWall(now, l.Since)
	}
	return s
}

func probeStatus(p probes.Status, now time.Time) status.ProbeStatus {
	return status.ProbeStatus{
		Name: p.Name, Type: p.Type, Target: p.Instance, Interval: p.Interval, State: p.State,
		FirstRun: clock.OnWall(now, p.FirstRun), LastRun: clock.OnWall(now, p.LastRun), Took: p.Took, Samples: p.Samples, Failures: p.Failures,
		Skipped: p.Skipped, Refused: p.Refused, LastError: p.LastError,
	}
}

// forecastSpan is over what the rate of the log's bytes is averaged, so that how long the log lasts stays the same between the
// rounds of inputs with an interval of a minute.
const forecastSpan = 5 * time.Minute

// watchRates computes the rates until ctx ends.
func (a *Agent) watchRates(ctx context.Context) {
	ticks, stop := a.beat.Every(meter.RateTick)
	defer stop()
	for {
		now := time.Now()
		log := a.log.Status()
		a.appended.Observe(now, log.Appended)
		if now.Sub(a.started) >= status.RateFrom {
			a.written.Observe(now, uint64(log.Written))
		}
		for _, t := range a.targets.All() {
			t.Observe(now)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}
