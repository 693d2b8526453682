package agent

import (
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/agent/config"
	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/internal/version"
	"hwsagent/probes"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// Status returns a snapshot of the whole agent. Its times are on the wall clock as it is set now, so that an event
// before a step of the clock does not appear to be a year old.
func (a *Agent) Status() status.Status {
	now := time.Now()
	a.mu.Lock()
	cfgStatus, cfg := a.status, a.cfg
	a.mu.Unlock()
	cfgStatus.Underway = a.changes.overdue()
	cfgStatus.LoadedAt, cfgStatus.ReloadedAt = byClock(now, cfgStatus.LoadedAt), byClock(now, cfgStatus.ReloadedAt)
	s := status.Status{
		Schema: 1, Version: version.Version, Host: a.hostname, Running: true, Now: now, Started: byClock(now, a.started),
		Clock:  a.clock.status(now),
		Config: cfgStatus,
		WAL:    logStatus(a.log.Status(), cfg, a.o.StoragePath, now),
	}
	s.WAL.SamplesPerSec, s.WAL.BytesPerSec = a.appended.perSecond(), a.written.perSecond()
	for _, t := range a.targets.all() {
		ts := t.status(a.clock.lastStep(), now)
		ts.Tenants = a.targets.tenants(t.name)
		s.Targets = append(s.Targets, ts)
	}
	s.Targets = append(s.Targets, a.targets.missing()...)
	for _, o := range a.log.Orphans() {
		if slices.ContainsFunc(s.Targets, func(t status.TargetStatus) bool { return t.Name == o.Name }) {
			continue // it is stopping or starting
		}
		why := "not in the configuration since " + o.Since.Format(time.DateTime)
		if o.Left > 0 {
			why += "; kept while the agent runs for another " + model.Duration(o.Left.Round(time.Second)).String()
		}
		s.Targets = append(s.Targets, status.TargetStatus{
			Name: o.Name, State: status.StateOrphan, Why: why, PausedSince: a.log.PausedSince(o.Name),
			PendingSamples: o.Ledger.Pending, PendingBytes: o.PendingBytes, Ledger: queues.Ledger(o.Ledger),
		})
	}
	for _, p := range a.runner.Status() {
		s.Probes = append(s.Probes, probeStatus(p, now))
	}
	s.Pull = a.pullStatus(cfg, now)
	s.Inputs, s.Duplicates = inputStatus(a.inputs, now)
	if a.scraper != nil {
		s.Scrape = a.scraper.Status(now)
	}
	for _, r := range a.intake.Status() {
		s.Receivers = append(s.Receivers, receiverStatus(r, now))
	}
	s.Losses = a.events.Account(s)
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
	s.LowSince = byClock(now, l.LowSince)
	if l.Err != nil {
		s.Error, s.ErrorSince = l.Err.Error(), byClock(now, l.Since)
	}
	return s
}

func (t *target) status(stepped, now time.Time) status.TargetStatus {
	q := t.queue.Status()
	l := t.reader.Ledger()
	s := status.TargetStatus{
		Name: t.name, URL: t.url, State: q.State, Why: q.Why, Tenant: t.config.Tenant(),
		PendingSamples: l.Pending, MissedSamples: q.Missed, MaxBacklogBytes: int64(t.config.Target.MaxBacklog),
		Ledger:   queues.Ledger(l),
		Protocol: q.Protocol, Fallback: q.Fallback, FallbackUntil: byClock(now, q.FallbackUntil),
		Compression: q.Compression, Plain: q.Plain, PlainUntil: byClock(now, q.PlainUntil),
		Shards: q.Shards, MaxShards: q.MaxShards, Retries: q.Retries, Failed: q.Failed,
		LastSuccess: byClock(now, q.LastSuccess), LastError: q.LastError, LastErrorAt: byClock(now, q.LastErrorAt),
		DownSince: byClock(now, q.DownSince), NextTry: byClock(now, q.NextTry), AwaitsClock: q.AwaitsClock, ClockSkew: q.ClockSkew, FutureLimit: time.Duration(t.config.Target.FutureLimit), DeadLetters: t.letters.Count(),
	}
	if s.State == status.StateHeld && !q.AwaitsClock || s.State == status.StateRetrying {
		s.Failure, s.Try = q.Failure.String(), q.Failure.Hint(t.config)
	}
	if !t.paused.IsZero() {
		s.State, s.Why, s.PausedSince = status.StatePaused, "paused with hwsagent targets pause", byClock(now, t.paused)
	}
	for _, x := range q.Quarantined {
		s.Quarantined = append(s.Quarantined, status.QuarantineStatus{Reason: x.Reason, Text: x.Text, Words: x.Words, Series: x.Series, Example: x.Example, Since: byClock(now, x.Since), Samples: x.Samples})
	}
	s.CredentialsAt = byClock(now, t.client.CredentialsRenewed())
	if err := t.client.CredentialError(); err != nil {
		s.Credentials = err.Error()
	}
	for _, e := range t.client.Expiries() {
		s.Expiries = append(s.Expiries, status.ExpiryStatus{What: e.What, At: e.Until.Round(0), WarnAt: e.WarnAt().Round(0)})
	}
	s.SentPerSec = t.rate.perSecond()
	b := t.backlog(l, q.DownSince, stepped, now)
	s.PendingBytes, s.OldestPending, s.LagSeconds = b.bytes, b.oldest, b.lag.Seconds()
	return s
}

// backlog describes a target's pending samples.
type backlog struct {
	bytes  int64
	oldest time.Time // zero if there are none
	lag    time.Duration
}

// backlog returns the pending samples of a target. down is since when the target accepts nothing, and stepped when the
// clock was last set; either is zero if that does not apply.
func (t *target) backlog(l queue.Ledger, down, stepped, now time.Time) (b backlog) {
	b.bytes = t.reader.Pending()
	if oldest := t.reader.OldestPending(); l.Pending > 0 && !oldest.IsZero() {
		b.oldest, b.lag = oldest, age(oldest, down, stepped, now)
	}
	return b
}

// age returns the age of pending samples, by the timestamp of the oldest. If the clock was set while the target
// accepted nothing, the age is at least the length of that outage: setting the clock back by two hours must not hide
// the outage for two hours.
func age(oldest, down, stepped, now time.Time) time.Duration {
	d := max(0, now.Sub(oldest))
	if !down.IsZero() && stepped.After(down) {
		d = max(d, now.Sub(down))
	}
	return d
}

func probeStatus(p probes.Status, now time.Time) status.ProbeStatus {
	return status.ProbeStatus{
		Name: p.Name, Type: p.Type, Target: p.Instance, Interval: p.Interval, State: p.State,
		LastRun: byClock(now, p.LastRun), Took: p.Took, Samples: p.Samples, Failures: p.Failures,
		Skipped: p.Skipped, Refused: p.Refused, LastError: p.LastError,
	}
}
