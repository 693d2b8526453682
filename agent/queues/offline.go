package queues

import (
	"path/filepath"
	"time"

	"hwsagent/agent/events"
	"hwsagent/agent/inspect"
	"hwsagent/agent/status"
	"hwsagent/internal/version"
	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// OfflineStatus returns the status that can be read in the storage directory of a stopped agent: the log, and each
// target's account and backlog. It changes nothing, and takes no longer for a large backlog than for a small one. It
// returns an error if the directory has no log.
func OfflineStatus(storage string, now time.Time) (status.Status, error) {
	if abs, err := filepath.Abs(storage); err == nil {
		storage = abs
	}
	in, err := inspect.Glance(storage)
	if err != nil {
		return status.Status{}, err
	}
	s := status.Status{Schema: 1, Version: version.Version, Now: now, Targets: []status.TargetStatus{}, Probes: []status.ProbeStatus{}}
	s.WAL = status.WALStatus{Dir: storage, Segments: len(in.Segments), Appended: in.Head.Total}
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
	return status.Judge(s), nil
}

// offlineTarget returns a target's status.
func offlineTarget(t wal.TargetInspection, now time.Time) status.TargetStatus {
	s := status.TargetStatus{
		Name: t.Name, State: status.StateStopped, Why: t.Problem, PendingSamples: t.Pending, PendingBytes: t.PendingBytes,
		PausedSince: t.PausedSince,
		Ledger:      status.LedgerStatus{Appended: t.Appended, Delivered: t.Delivered, Filtered: t.Filtered, Dropped: t.Dropped, Pending: t.Pending, Balanced: t.Balanced},
	}
	for reason, n := range t.Dropped {
		if reason != queue.Unconfirmed.String() {
			s.Ledger.Lost += n
		}
	}
	if !t.Oldest.IsZero() {
		s.OldestPending, s.LagSeconds = t.Oldest, max(0, now.Sub(t.Oldest).Seconds())
	}
	return s
}
