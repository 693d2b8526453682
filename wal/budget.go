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

// budget removes segments: those that all targets have delivered, and under DropOldest
// the oldest ones when there is no room.
type budget struct {
	dir     disk.Directory
	index   *index
	targets *targets
	metrics *metrics
	logger  *slog.Logger

	low  atomic.Bool  // less than MinFreeBytes is free, as of the last check
	free atomic.Int64 // bytes free at the last check
	most atomic.Int64 // size limit of the log while free space is low, in bytes; 0: no limit. See bound

	mu      sync.Mutex // held while segments are removed, over I/O; guards the next fields
	garbage []int      // numbers of segments whose files could not be removed yet
	refused struct {   // the last segment that scanEnd could not read
		number int
		since  time.Time
	}

	configMu sync.Mutex // guards settings, noted and lowSince; never held during I/O
	settings Settings
	lowSince time.Time         // since when low is true; zero while it is false
	noted    map[string]string // the last error logged, by action; see note
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

// full returns an error if a commit of that many bytes must be refused.
func (g *budget) full(bytes int64) error {
	s := g.config()
	if s.policy() != Reject {
		return nil
	}
	// The active segment cannot be removed, even if it is delivered. If it is the only one, a
	// refusal could last forever, because one commit may exceed the budget.
	if n, used := g.index.usage(); n > 1 && s.MaxBytes > 0 && used+bytes > s.MaxBytes {
		return fmt.Errorf("%w: %d of %d bytes hold samples that are not delivered yet", ErrFull, used, s.MaxBytes)
	}
	if g.low.Load() {
		return fmt.Errorf("%w: less than min_free_bytes (%d) is free on the file system", ErrFull, s.MinFreeBytes)
	}
	return nil
}

// fits reports whether that many more bytes are within the bounds, as of the last check.
func (g *budget) fits(bytes int64) bool {
	s := g.config()
	_, used := g.index.usage()
	most := g.most.Load()
	return (s.MaxBytes <= 0 || used+bytes <= s.MaxBytes) && (most <= 0 || used+bytes <= most)
}

// makeRoom makes room for that many bytes by removing segments, if it can. It waits for a
// concurrent call, because otherwise the log could exceed the budget.
func (g *budget) makeRoom(bytes int64) { g.enforce(bytes) }

// enforce removes segments according to the settings, so that reserve more bytes fit. It
// reports whether the active segment must be sealed first: only sealed ones can be removed.
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
			// The active segment may use the space; sealing it must free enough to be worth it.
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

// bound limits the log while less than MinFreeBytes is free: to its size at the beginning, after delivered segments
// were removed. Pending samples are not dropped to make room for files outside the log.
func (g *budget) bound(s Settings) {
	if !g.low.Load() || g.most.Load() > 0 {
		return
	}
	_, used := g.index.usage()
	least := min(leastLog, s.MinFreeBytes/4, used+g.free.Load())
	g.most.Store(max(used, least, 1))
}

// unbound lifts the limit of bound once there is room for a log of that size plus MinFreeBytes. With a smaller margin,
// each removed segment would lift it, and the log would lose the space that other files take meanwhile.
func (g *budget) unbound(s Settings, free int64) {
	_, used := g.index.usage()
	if most := g.most.Load(); most > 0 && (s.MinFreeBytes <= 0 || free >= s.MinFreeBytes+max(0, most-used)) {
		g.most.Store(0)
	}
}

// leastLog is the size, in bytes, that the log may reach although less than MinFreeBytes is free, capped at a
// quarter of MinFreeBytes. It is two segments of default size, because a segment can be removed only after
// it has ended, and without loss only after it is delivered.
const leastLog = 2 * defaultSegmentBytes

// minDroppable is the least size, in bytes, of an active segment that is sealed to free
// space: shorter ones free too little to be worth the loss.
const minDroppable = 1 << 20

// over checks the free space, and reports whether that many bytes do not fit.
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

// noteLow records whether free space is low, and since when.
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

// littleSince is the time since which less than MinFreeBytes is free; zero if enough is free.
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

// dropDelivered removes the oldest segment if no target needs it.
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

// drop removes the oldest segment although targets may need it. First their ledgers
// durably count the samples that they lose.
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
	g.targets.closeDropped()
	g.metrics.deletedBytes.WithLabelValues("budget").Add(float64(seg.Size))
	return nil
}

// scanPatience is how long a segment is kept beyond the budget because it cannot be read.
const scanPatience = 15 * time.Second

// scanEnd finds the last commit of a segment if the next header does not name it. A
// segment that stays unreadable is removed uncounted; cursors find its samples missing
// between the totals of commits before and after, and count them as damage.
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
	if info.Refused != nil {
		if g.refused.since.IsZero() || g.refused.number != seg.Number {
			g.refused.number, g.refused.since = seg.Number, time.Now()
		}
		if time.Since(g.refused.since) < scanPatience {
			return end, errors.Join(info.Refused, f.Close())
		}
	}
	if info.Last.Commit > 0 {
		end.Log, end.Commit, end.Total = g.index.mark().Log, info.Last.Commit, info.Last.Total
	}
	return end, f.Close()
}

// unlink removes a segment's file, or retries later.
func (g *budget) unlink(number int) {
	g.garbage = append(g.garbage, number)
	g.collect()
}

// collect removes the files of dropped segments.
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

// note logs the error of an action, once until the action succeeds or fails with another
// error.
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
