package wal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
)

// budget lets segments go: those that nobody needs any more, and under DropOldest
// the oldest ones when there is no room.
type budget struct {
	dir     disk.Directory
	index   *index
	targets *targets
	metrics *metrics
	logger  *slog.Logger

	low  atomic.Bool  // less than MinFreeBytes is free, as of the last check
	free atomic.Int64 // bytes free at the last check
	most atomic.Int64 // bytes that the log may have for want of free space; 0: there is enough. See bound

	mu      sync.Mutex // held while segments are removed, over I/O; guards garbage
	garbage []int      // numbers of segments whose files could not be removed yet

	configMu sync.Mutex // guards settings, noted and lowSince; never held during I/O
	settings Settings
	lowSince time.Time         // since when low is true; zero while it is not
	noted    map[string]string // by action: the error that was logged last; see note
}

func (s Settings) policy() OnFull {
	if s.OnFull == "" {
		return DropOldest
	}
	return s.OnFull
}

func (g *budget) config() Settings {
	g.configMu.Lock()
	defer g.configMu.Unlock()
	return g.settings
}

func (g *budget) configure(s Settings) {
	g.configMu.Lock()
	defer g.configMu.Unlock()
	g.settings = s
}

// full says why a commit that takes so many bytes more must be refused.
func (g *budget) full(bytes int64) error {
	s := g.config()
	if s.policy() != Reject {
		return nil
	}
	// A segment that is being written cannot go, even when all of it is delivered. If it is
	// the only one, refusing would be for ever: a commit may be larger than the budget.
	if n, used := g.index.usage(); n > 1 && s.MaxBytes > 0 && used+bytes > s.MaxBytes {
		return fmt.Errorf("%w: %d of %d bytes hold samples that are not delivered yet", ErrFull, used, s.MaxBytes)
	}
	if g.low.Load() {
		return fmt.Errorf("%w: less than min_free_bytes (%d) is free on the file system", ErrFull, s.MinFreeBytes)
	}
	return nil
}

// fits reports whether so many bytes more are within the bounds, as far as they were last seen.
func (g *budget) fits(bytes int64) bool {
	s := g.config()
	_, used := g.index.usage()
	most := g.most.Load()
	return (s.MaxBytes <= 0 || used+bytes <= s.MaxBytes) && (most <= 0 || used+bytes <= most)
}

// makeRoom makes room for so many bytes, if letting segments go can. It waits for whoever
// is at it already: going on without would go beyond the budget.
func (g *budget) makeRoom(bytes int64) { g.enforce(bytes) }

// enforce lets segments go as the settings say, so that so many more bytes have
// room. It reports whether the active segment is in the way: only sealed ones can go.
func (g *budget) enforce(reserve int64) (active bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.config()
	g.collect()

	for g.over(s, reserve) || g.low.Load() || s.Retain <= 0 || g.expired(s) {
		if ok := g.dropDelivered(); !ok {
			break
		}
	}
	g.bound(s)
	for s.policy() == DropOldest && g.over(s, reserve) {
		seg, end, ok := g.index.oldest()
		if !ok {
			// What is being written may be the problem, once there is something to gain.
			_, used := g.index.usage()
			return s.MaxBytes > 0 && used > s.MaxBytes || g.most.Load() > 0 && used > max(g.most.Load(), minDroppable)
		}
		if err := g.drop(seg, end); err != nil {
			g.note("let the oldest segment go", err)
			return false
		}
	}
	return false
}

// bound keeps the log from growing while less than MinFreeBytes is free: it may be as long as it was when
// that began, once what is delivered had gone. What waits is not let go to make room for the files of others.
func (g *budget) bound(s Settings) {
	if !g.low.Load() || g.most.Load() > 0 {
		return
	}
	_, used := g.index.usage()
	least := min(leastLog, s.MinFreeBytes/4, used+g.free.Load())
	g.most.Store(max(used, least, 1))
}

// unbound ends that when there is room for the log to be as long as it may be, and MinFreeBytes beside it: else each
// segment that makes room for the next would end it, and the log lose the room that others take meanwhile.
func (g *budget) unbound(s Settings, free int64) {
	_, used := g.index.usage()
	if most := g.most.Load(); most > 0 && (s.MinFreeBytes <= 0 || free >= s.MinFreeBytes+max(0, most-used)) {
		g.most.Store(0)
	}
}

// leastLog is how long a log may become although less than MinFreeBytes is free, in bytes, if that is a
// quarter of MinFreeBytes at most: two segments of the usual length, since a segment cannot go before
// it has ended, nor, without a loss, before it is delivered.
const leastLog = 2 * defaultSegmentBytes

// minDroppable is how long an active segment is at least that is sealed for want of
// free space, in bytes: shorter ones free nothing worth the loss.
const minDroppable = 1 << 20

// over looks how much is free, and reports whether there is too little room for so many bytes.
func (g *budget) over(s Settings, reserve int64) bool {
	free, err := g.dir.Free()
	g.note("check free space", err)
	if err == nil {
		g.free.Store(free)
		g.unbound(s, free)
	}
	g.noteLow(err == nil && s.MinFreeBytes > 0 && free < s.MinFreeBytes)
	return !g.fits(reserve)
}

// noteLow takes down whether little is free, and since when.
func (g *budget) noteLow(low bool) {
	if g.low.Swap(low) == low {
		return
	}
	g.configMu.Lock()
	defer g.configMu.Unlock()
	g.lowSince = time.Time{}
	if low {
		g.lowSince = time.Now()
	}
}

// littleSince is since when less than MinFreeBytes is free; zero if it is not.
func (g *budget) littleSince() time.Time {
	g.configMu.Lock()
	defer g.configMu.Unlock()
	return g.lowSince
}

// expired reports whether the oldest segment was sealed longer ago than Retain.
func (g *budget) expired(s Settings) bool {
	seg, _, ok := g.index.oldest()
	return ok && time.Since(seg.Sealed) > s.Retain
}

// dropDelivered lets the oldest segment go if no target needs it.
func (g *budget) dropDelivered() bool {
	seg, _, ok := g.index.oldest()
	if !ok {
		return false
	}
	if lowest, any := g.targets.lowest(); any && lowest <= seg.Number {
		return false
	}
	g.index.forget()
	g.unlink(seg.Number)
	g.metrics.deletedBytes.WithLabelValues("delivered").Add(float64(seg.Size))
	return true
}

// drop lets the oldest segment go although targets may need it. What they lose is in
// their ledgers, durably, before the file goes.
func (g *budget) drop(seg segment.Info, end Mark) error {
	if end.Commit == 0 {
		var err error
		if end, err = g.scanEnd(seg, end); err != nil {
			return err
		}
	}
	if err := g.targets.dropThrough(end); err != nil {
		return err
	}
	g.index.forget()
	g.unlink(seg.Number)
	g.metrics.deletedBytes.WithLabelValues("budget").Add(float64(seg.Size))
	return nil
}

// scanEnd finds the last commit of a segment whose successor does not tell. A segment
// that cannot be read is let go uncounted; its samples are missing between the marks
// of what is read before and after, and count as damage.
func (g *budget) scanEnd(seg segment.Info, end Mark) (Mark, error) {
	f, err := g.dir.Open(segment.Name(seg.Number), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return end, nil
	}
	if err != nil {
		return end, fmt.Errorf("open segment: %w", err)
	}
	info, err := segment.Scan(f, seg.Number, seg.End)
	g.note("scan segment", cmp.Or(err, info.Refused))
	if info.Last.Commit > 0 {
		end.Log, end.Commit, end.Total = g.index.mark().Log, info.Last.Commit, info.Last.Total
	}
	return end, f.Close()
}

// unlink removes a segment's file, or remembers to.
func (g *budget) unlink(number int) {
	g.garbage = append(g.garbage, number)
	g.collect()
}

// collect removes the files of segments that were let go.
func (g *budget) collect() {
	kept := g.garbage[:0]
	for _, n := range g.garbage {
		err := g.dir.Remove(segment.Name(n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			kept = append(kept, n)
			g.note("remove segment", err)
		}
	}
	g.garbage = kept
}

// note logs an error of some action, once until the action succeeds or fails in
// another way.
func (g *budget) note(action string, err error) {
	g.configMu.Lock()
	defer g.configMu.Unlock()
	if err == nil {
		delete(g.noted, action)
		return
	}
	g.metrics.errors.Inc()
	if g.noted[action] == err.Error() {
		return
	}
	if g.noted == nil {
		g.noted = make(map[string]string)
	}
	g.noted[action] = err.Error()
	g.logger.Error("The log cannot do its housekeeping", "action", action, "err", err)
}
