package wal

import (
	"fmt"
	"io"

	"hwsagent/wal/queue"
)

// dump writes what a log that has just been opened knows: its segments, its head, and each target's savepoint beside the one that the
// process before had.
func (c *crashLife) dump(out io.Writer, l *Log) {
	for _, s := range l.index.segments() {
		h := s.Header
		fmt.Fprintf(out, "  segment %d: %d of %d bytes, behind %d=%d, found %d, durable %d=%d", s.Number, s.End, s.Size, h.Commit, h.Total, h.Found, h.DurableCommit, h.DurableTotal)
		fmt.Fprintf(out, "; known: %v\n", s.Known())
	}
	fmt.Fprintf(out, "  head %s, durable %s, by savepoints %s, %d lost\n", brief(l.head()), brief(l.durable()), brief(l.targets.store.Durable()), l.writer.lost)
	for _, f := range c.targets {
		if t := l.targets.byName[f.name]; t != nil {
			fmt.Fprintf(out, "  %s: %s\n    was %s\n", f.name, briefSavepoint(t.savepoint()), briefSavepoint(f.saved))
		}
	}
	for id, o := range c.commits {
		if o.lost {
			fmt.Fprintf(out, "  commit %d with %d samples is lost\n", id, o.samples)
		}
	}
}

// brief is the place of a mark, its commit number and its total.
func brief(m Mark) string { return fmt.Sprintf("%d:%d#%d=%d", m.Segment, m.Offset, m.Commit, m.Total) }

func briefSavepoint(sp queue.Savepoint) string {
	text := fmt.Sprintf("from %s, sent to %s, done", brief(sp.Start), brief(sp.High))
	for _, r := range sp.Done {
		text += fmt.Sprintf(" (%s to %s)", brief(r.From), brief(r.To))
	}
	return fmt.Sprintf("%s, %+v", text, sp.Outcome)
}
