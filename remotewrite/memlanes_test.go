package remotewrite

import (
	"context"
	"slices"

	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// memGap is a stretch of a memLog that was left behind.
type memGap struct {
	from, to, high wal.Mark
}

// Split leaves the waiting samples to the backlog, as [wal.Reader.Split] does.
func (m *memLog) Split() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, head := m.sp.Acked(), m.head()
	if head.Commit <= at.Commit || head.Commit < m.sp.High.Commit || len(m.gaps) == 15 {
		return false
	}
	m.gaps = append(m.gaps, memGap{from: at, to: head, high: m.sp.High})
	m.sp.Done = []queue.Range{{From: m.sp.Start, To: head}}
	m.sp.High = head
	return true
}

// memBacklog is the cursor of a memLog's backlog.
type memBacklog struct {
	m      *memLog
	next   int    // entry that Next returns
	placed bool   // next is where it should be
	end    uint64 // commit of the end of the gap that is read
}

func (b *memBacklog) Next(ctx context.Context) (*wal.Entry, error) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(b.m.gaps) == 0 || b.placed && b.m.gaps[0].to.Commit != b.end {
		return nil, wal.ErrCaughtUp
	}
	if g := b.m.gaps[0]; !b.placed {
		b.next, b.end, b.placed = int(g.from.Commit), g.to.Commit, true
	}
	if uint64(b.next) >= b.end {
		return nil, wal.ErrCaughtUp
	}
	e := b.m.entry(b.next)
	b.next++
	return e, nil
}

func (b *memBacklog) Rewind() {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	b.placed = false
}

func (b *memBacklog) Release() {}

func (b *memBacklog) Reserve(high wal.Mark) error {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	if b.m.failing != nil {
		return b.m.failing
	}
	if len(b.m.gaps) == 0 {
		return nil
	}
	g := &b.m.gaps[0]
	left := slices.IndexFunc(b.m.left, func(x memGap) bool { return x.to == g.to })
	if more := high.Commit > g.high.Commit; more || left < 0 {
		if more {
			g.high = high
		}
		b.m.save()
	}
	return nil
}

func (b *memBacklog) Advance(to wal.Mark, o queue.Outcome) {
	m := b.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.gaps) == 0 || to.Commit <= m.gaps[0].from.Commit || to.Commit > m.gaps[0].to.Commit {
		m.t.Errorf("Advance of the backlog to commit %d: gaps %+v", to.Commit, m.gaps)
		return
	}
	if got, want := o.Sum(), to.Total-m.gaps[0].from.Total; got != want {
		m.t.Errorf("Advance of the backlog to commit %d accounts for %d samples, want %d", to.Commit, got, want)
	}
	if m.gaps[0].from = to; to.Commit == m.gaps[0].to.Commit {
		m.gaps = m.gaps[1:]
	}
	m.ledger.Add(o)
}

func (b *memBacklog) Reach() (r queue.Reach, ok bool) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	for i, g := range b.m.gaps {
		if i == 0 {
			r = queue.Reach{Acked: g.from, End: g.to, High: g.high}
		}
		r.Missed += g.to.Total - g.from.Total
	}
	return r, len(b.m.gaps) > 0
}

func (b *memBacklog) Head() wal.Mark { return b.m.Head() }
