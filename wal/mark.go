package wal

import "hwsagent/wal/internal/segment"

// ID is 16 random bytes that name a log or a segment. A segment's ID tells it from
// an earlier file of the same number that a power cut took away.
type ID = segment.ID

// Position is a place in the log: the end of a commit. Positions order first by
// segment, then by offset. The zero Position is before everything.
type Position = segment.Position

// Mark is a Position together with what identifies and counts it: enough to find
// the place again after a restart, to notice that it is gone, and to do the
// ledger's arithmetic without reading the log.
type Mark = segment.Mark
