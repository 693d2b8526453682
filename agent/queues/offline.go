package queues

import (
	"path/filepath"
	"time"

	"hwsagent/agent/events"
	"hwsagent/agent/inspect"
	"hwsagent/agent/web"
	"hwsagent/internal/version"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// OfflineStatus returns the status that can be read in the storage directory of a stopped agent: the log, and each
// target's account and backlog. It changes nothing, and takes no longer for a large backlog than for a small one. It
// returns an error if the directory has no log.
func OfflineStatus(storage string, now time.Time) (web.Status, error) {
	if abs, err := filepath.Abs(storage); err == nil {
		storage = abs
	}
	in, err := inspect.Glance(storage)
	if err != nil {
		return web.Status{}, err
	}
	s := web.Status{Schema: 1, Version: version.Version, Now: now, Targets: []web.TargetStatus{}, Probes: []web.ProbeStatus{}}
	s.WAL = web.WALStatus{Dir: storage, Segments: len(in.Segments), Appended: in.Head.Total}
	if free, err := wal.FreeBytes(storage); err == nil {
		s.WAL.FreeBytes = free
	}
	for i, seg := range in.Segments {
		if i == 0 {
			s.WAL.FirstSegment = seg.Number
		}
		s.WAL.LastSegment = seg.Number
		s.WAL.Bytes += seg.Bytes
	}
	for _, t := range in.Targets {
		s.Targets = append(s.Targets, offlineTarget(t, now))
	}
	journal, _ := events.Open(storage) // events that cannot be read are still in the ledgers, without their time
	s.Losses = journal.Account(s)
	return web.Judged(s), nil
}

// offlineTarget returns a target's status.
func offlineTarget(t wal.TargetInspection, now time.Time) web.TargetStatus {
	s := web.TargetStatus{
		Name: t.Name, State: web.StateStopped, Why: t.Problem, PendingSamples: t.Pending, PendingBytes: t.PendingBytes,
		PausedSince: t.PausedSince,
		Ledger:      web.LedgerStatus{Appended: t.Appended, Delivered: t.Delivered, Filtered: t.Filtered, Dropped: t.Dropped, Pending: t.Pending, Balanced: t.Balanced},
	}
	for reason, n := range t.Dropped {
		if reason != queue.Resent.String() {
			s.Ledger.Lost += n
		}
	}
	if !t.Oldest.IsZero() {
		s.OldestPending, s.LagSeconds = t.Oldest, max(0, now.Sub(t.Oldest).Seconds())
	}
	return s
}
