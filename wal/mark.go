package wal

import "hwsagent/wal/internal/segment"

// ID is 16 random bytes that identify a log or a segment. The ID distinguishes a segment
// from an earlier file of the same number that a power cut removed.
type ID = segment.ID

// Position is a place in the log: the end of a commit. Positions order first by
// segment, then by offset. The zero Position is before everything.
type Position = segment.Position

// Mark is a Position plus its log, segment ID, commit number and total. That suffices to
// find the position again after a restart, to detect that it no longer exists, and to
// compute ledgers without reading the log.
type Mark = segment.Mark
