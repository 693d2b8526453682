package targets

import (
	"time"

	"hwsagent/agent/clock"
	"hwsagent/agent/queues"
	"hwsagent/agent/status"
	"hwsagent/remotewrite/deadletter"
	"hwsagent/wal/queue"
)

// Name returns the name of the target.
func (t *Target) Name() string { return t.name }

// Letters returns the store of its dead letters.
func (t *Target) Letters() *deadletter.Store { return t.letters }

// Poke makes the queue try again at once.
func (t *Target) Poke() { t.queue.Poke() }

// Observe reads the target's counter for its rate.
func (t *Target) Observe(now time.Time) { t.rate.Observe(now, t.reader.Ledger().Delivered) }

// Account counts the samples that a target has settled, and describes its backlog.
type Account struct {
	Total, Since queue.Ledger // of the queue, and since the start of the process
	Missed       uint64       // MissedSamples of the status
	PendingBytes int64
	Lag          time.Duration
	Segment      int // of the log, up to which everything has its outcome
}

// Account returns the account of the target. stepped is when the wall clock was last set.
func (t *Target) Account(stepped, now time.Time) Account {
	l, q := t.reader.Ledger(), t.queue.Status()
	b := t.backlog(l, q.DownSince, stepped, now)
	save := t.reader.Savepoint()
	return Account{Total: l, Since: t.ledgers.count(t.name, l), Missed: q.Missed, PendingBytes: b.bytes, Lag: b.lag, Segment: save.Acked().Segment}
}

// Status describes the target at now. stepped is when the wall clock was last set.
func (t *Target) Status(stepped, now time.Time) status.TargetStatus {
	q := t.queue.Status()
	l := t.reader.Ledger()
	s := status.TargetStatus{
		Name: t.name, URL: t.url, State: q.State, Why: q.Why, Tenant: t.config.Tenant(),
		PendingSamples: l.Pending, MissedSamples: q.Missed, MaxBacklogBytes: int64(t.config.Target.MaxBacklog),
		Ledger:   queues.Ledger(l),
		Protocol: q.Protocol, Fallback: q.Fallback, FallbackUntil: clock.OnWall(now, q.FallbackUntil),
		Compression: q.Compression, Plain: q.Plain,
		Shards: q.Shards, MaxShards: q.MaxShards, Retries: q.Retries, Failed: q.Failed,
		LastSuccess: clock.OnWall(now, q.LastSuccess), LastError: q.LastError, LastErrorAt: clock.OnWall(now, q.LastErrorAt),
		LastRefusal: q.LastRefusal.Text, LastRefusalAt: clock.OnWall(now, q.LastRefusal.At),
		DownSince: clock.OnWall(now, q.DownSince), NextTry: clock.OnWall(now, q.NextTry), AwaitsClock: q.AwaitsClock, ClockSkew: q.ClockSkew, FutureLimit: time.Duration(t.config.Target.FutureLimit), DeadLetters: t.letters.Count(),
	}
	if s.State == status.StateHeld || s.State == status.StateRetrying {
		s.Failure, s.Try, s.Permanent = q.Failure.Kind.String(), q.Failure.Remedy, q.Failure.Permanent
	}
	if !t.paused.IsZero() {
		s.State, s.Why, s.PausedSince = status.StatePaused, "paused with hwsagent targets pause", clock.OnWall(now, t.paused)
	}
	s.LostAtMost = s.Ledger.Dropped["budget"] > 0 && (t.config.Target.Tenant != nil || len(t.config.WriteRelabelConfigs) > 0)
	for _, x := range q.Muted {
		s.Muted = append(s.Muted, status.MuteStatus{Reason: x.Reason, Text: x.Text, Words: x.Words, Series: x.Series, Example: x.Example, Since: clock.OnWall(now, x.Since), Samples: x.Samples})
	}
	s.CredentialsAt = clock.OnWall(now, t.client.CredentialsRenewed())
	if err := t.client.CredentialError(); err != nil {
		s.Credentials = err.Error()
	}
	for _, e := range t.client.Expiries() {
		s.Expiries = append(s.Expiries, status.ExpiryStatus{What: e.What, At: e.Until.Round(0), WarnAt: e.WarnAt().Round(0)})
	}
	s.SentPerSec = t.rate.PerSecond()
	s.Tenants = t.tenants()
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
func (t *Target) backlog(l queue.Ledger, down, stepped, now time.Time) (b backlog) {
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
