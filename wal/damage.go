package wal

import (
	"log/slog"
	"sync/atomic"

	"hwsagent/wal/internal/segment"
)

// finding is the damage that a cursor found in a segment when it closed it (skipped), or before a segment when it opened it
// (missing).
type finding struct {
	segment int
	skipped int64 // bytes
	missing int   // segment numbers before it that do not exist
}

// findings counts damage for one target, each segment once, however often the target's cursors read it. Only add must not be
// called concurrently.
type findings struct {
	log *slog.Logger

	damaged  atomic.Int64 // bytes skipped as damage, in segments up to counted
	counted  int
	holes    atomic.Int64 // missing segment numbers below furthest, the highest opened
	furthest int
}

func newFindings(log *slog.Logger) *findings { return &findings{log: log, counted: -1, furthest: -1} }

func (f *findings) add(n finding) {
	if n.skipped > 0 && n.segment > f.counted {
		f.counted = n.segment
		f.damaged.Add(n.skipped)
		f.log.Warn("Skipped damage in the log", "segment", segment.Name(n.segment), "bytes", n.skipped)
	}
	if n.missing > 0 && n.segment > f.furthest {
		f.holes.Add(int64(n.missing))
		f.log.Warn("Segments of the log are missing", "from", segment.Name(n.segment-n.missing), "to", segment.Name(n.segment-1))
	}
	f.furthest = max(f.furthest, n.segment)
}
