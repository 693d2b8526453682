package wal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal/queue"
)

// crashLife is one log's life through several crashes.
type crashLife struct {
	*machine
	oracle
	rng     *rand.Rand // of the actors
	dir     string
	options Options
	pace    time.Duration // of commits
	evicts  bool          // the log forgets series that go on
	targets []*crashTarget
	labels  [3][]labels.Labels // by committer and index

	after  crash // what had happened when the log was opened last
	cut    bool  // a power cut was among the crashes
	broken error // the first thing that was wrong
	actors sync.WaitGroup
}

// crashTarget is one target, and what its receiver has.
type crashTarget struct {
	name     string
	opts     ReaderOptions
	first    int           // session in which it is opened first
	only     bool          // in that session and the last only: an orphan between
	pace     time.Duration // of its rounds
	r        *Reader       // nil when it is not open
	known    bool          // it has a savepoint
	sure     bool          // that is durable
	since    []bool        // by commit: it was not there any more when the target was opened first
	received []int         // by commit: in which pass it came last; 0 is never
	passes   int           // goes up when a lane starts again

	splits bool      // the newest comes first now and then
	live   crashLane // what comes after everything that was delivered
	back   crashLane // the backlog

	told  uint64          // greatest commit number whose outcome was told
	saved queue.Savepoint // when the process ended
}

// crashLane is one lane of a target.
type crashLane struct {
	*Lane
	pass     int
	at       Mark       // of the entry read last in this pass
	reserved []reserved // what was sent, in order of time
}

// reserved is a reservation that the disk did not refuse.
type reserved struct {
	commit uint64
	at     time.Time
}

// forget forgets the reservations that a power cut took: all beyond a mark.
func (l *crashLane) forget(high Mark) {
	l.reserved = slices.DeleteFunc(l.reserved, func(r reserved) bool { return r.commit > high.Commit })
}

// promised is the greatest commit number that the savepoint must name as sent after a crash: a kill takes no reservation, and a power
// cut those of the last interval, or since the disk failed last.
func (l *crashLane) promised(after crash) (commit uint64) {
	for _, r := range l.reserved {
		if !after.power || after.at.Sub(r.at) > acceptableLoss && after.at.Sub(after.fault) > acceptableLoss {
			commit = max(commit, r.commit)
		}
	}
	return commit
}

// pick is one of the choices.
func pick[T any](rng *rand.Rand, choices ...T) T { return choices[rng.IntN(len(choices))] }

func newCrashLife(seed uint64, dir string) *crashLife {
	rng := rand.New(rand.NewPCG(seed, 1))
	c := &crashLife{machine: newMachine(rand.New(rand.NewPCG(seed, 2))), rng: rng, dir: dir}
	c.evicts = slices.Contains([]uint64{4, 6, 7, 9, 10, 12}, seed%13)
	c.forgets = seed%4 == 3
	c.drops = c.forgets
	c.orphaned = map[int]uint64{}
	c.oracle.fail = func(format string, args ...any) {
		if c.broken == nil {
			c.broken = fmt.Errorf(format, args...)
		}
	}
	c.pace = pick(rng, 20*time.Millisecond, 80*time.Millisecond, 200*time.Millisecond)
	c.faulty = rng.IntN(3) == 0
	c.options = Options{Dir: dir, SegmentBytes: pick[int64](rng, 1500, 4000, 12_000, 80_000), wrap: c.wrap}
	c.options.Sync = pick(rng, SyncAlways, 0)
	c.options.MaxBytes = pick[int64](rng, 0, 0, 24_000, 80_000)
	c.options.Retain = pick(rng, 0, 0, time.Second, time.Hour)
	if rng.IntN(5) == 0 {
		c.options.OnFull = Reject
	}
	c.always = c.options.Sync == SyncAlways
	c.slow = c.options.MaxBytes == 0 // else a commit may wait for savepoints
	c.targets = []*crashTarget{
		{name: "fast", pace: 50 * time.Millisecond},
		{name: "slow", pace: 2 * time.Second},
		{name: "capped", pace: 700 * time.Millisecond, opts: ReaderOptions{MaxBacklog: pick[int64](rng, 0, 3000, 15_000)}},
		{name: "orphan", pace: 500 * time.Millisecond, only: true},
		{name: "late", pace: 300 * time.Millisecond, first: 1 + rng.IntN(3)},
		{name: "newest", pace: 200 * time.Millisecond, splits: true},
	}
	for _, f := range c.targets {
		f.opts.StartAt = StartOldest
	}
	for k := range c.labels {
		for i := range 40 {
			c.labels[k] = append(c.labels[k], labels.FromStrings("__name__", "m", "c", crashIndex(k), "i", crashIndex(i)))
		}
	}
	return c
}

// run lives the life.
func (c *crashLife) run(t testing.TB) {
	sessions := 3 + c.rng.IntN(4)
	var since crash // what has happened since the last process that opened the log
	for n := 0; n <= sessions && c.broken == nil; n++ {
		last := n == sessions
		c.session = n
		c.boot(c.drawFuse(n, last))
		o := c.options
		o.Sync = min(time.Second, time.Second-time.Duration(1+c.rng.IntN(1e7)))
		if c.storm != nil && !last && n > 0 && c.storm.rng.IntN(2) == 0 {
			c.storm.begin(c.machine)
		}
		l, err := Open(o)
		if !c.off && err != nil && !c.hit() {
			t.Fatalf("open the log on a good disk: %v", err)
		}
		if err == nil && !c.off && l.refreshAgain != nil {
			c.refreshed(t, l)
		}
		if err == nil {
			if !c.off {
				// The interval began as a little less than a second, so that the log's two
				// tasks never wake together.
				synctest.Wait()
				l.Reconfigure(c.options.Settings)
				c.runs(l)
				l.series.ref = 1 << 20 // so that sizes are the same in each run
				c.judging = true
				view := c.reopened(l, since, c.tally)
				for _, s := range view { // but for the IDs of log and segments, which are random
					c.note("opened with", fmt.Sprint(s.id, s.segment, s.end.Position, s.end.Commit, s.end.Total))
				}
				c.readStock(l, view)
				c.judging = false
				if c.out != nil {
					c.dump(c.out, l)
				}
				c.after, since = since, crash{}
			}
			c.live(t, l, n, last)
		}
		since.uncut = since.uncut || c.uncut
		since.fault, since.unsynced, since.unread = c.machine.fault, c.machine.unsynced, c.machine.unread
		if c.off {
			since.power = since.power || c.fuse.power
			c.cut = c.cut || c.fuse.power
			since.at = c.at
		}
		c.next()
		time.Sleep(time.Duration(c.rng.IntN(50)) * time.Millisecond)
	}
	c.tally.Lives++
	if c.holeSamples > 0 {
		c.tally.Holes++
	}
	c.tally.Commits += len(c.commits)
}

// refreshed makes the disk good while readers would wait for it: a start could not make durable what the last process left, and holds
// it in memory, or there are holes that count only when it is durable. So the oracle can read all of it.
func (c *crashLife) refreshed(t testing.TB, l *Log) {
	c.judging = true
	defer func() { c.judging = false }()
	cursor := newSilentCursor(l)
	defer cursor.close()
	start, err := oldest(l)
	if err != nil {
		t.Fatal(err)
	}
	cursor.place(start, Mark{})
	for e := (&Entry{}); e != nil && err == nil; {
		e, err = cursor.next(l.head())
	}
	if !c.drops && !errors.Is(err, errNotDurable) {
		return
	}
	c.brokenUntil = time.Time{}
	if err := l.retryRefresh(); err != nil && !c.off {
		c.fail("make durable what the last process left, on a good disk: %v", err)
	}
}

// drawFuse says when the n-th process ends.
func (c *crashLife) drawFuse(n int, last bool) fuse {
	f := fuse{power: c.rng.IntN(3) > 0, n: 1 + c.rng.IntN(60)}
	switch k := c.rng.IntN(12); {
	case last:
		f.n = 0
	case k < 3: // any operation
	case k < 5: // while it is being opened, most likely
		f.n = 1 + c.rng.IntN(6)
	case k < 9:
		f.dir = segmentDir
		f.op = pick(c.rng, "create", "write", "sync", "synced", "syncdir", "syncdired", "truncate", "remove", "remove")
		f.n = 1 + c.rng.IntN(map[string]int{"write": 40, "sync": 20, "synced": 20}[f.op]+3)
	default:
		f.dir = savepointDir
		f.op = pick(c.rng, "write", "sync", "synced", "create", "syncdir", "syncdired")
		f.n = 1 + c.rng.IntN(map[string]int{"write": 60, "sync": 20, "synced": 20}[f.op]+3)
	}
	if n > 0 && (f.op == "create" || f.op == "syncdir" || f.op == "syncdired") && f.dir == savepointDir {
		f.op = "write" // the files are there
	}
	return f
}

// live lets an open log be used until it crashes, or for a while.
func (c *crashLife) live(t testing.TB, l *Log, n int, last bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !c.off {
		c.openTargets(l, n, last)
	}
	switch {
	case c.off:
	case last:
		for _, f := range c.targets {
			c.drain(ctx, f)
		}
	default:
		for k := range c.labels {
			rng := rand.New(rand.NewPCG(c.rng.Uint64(), 3))
			c.actors.Go(func() { c.committer(ctx, l, k, rng) })
		}
		for _, f := range c.targets {
			if f.r != nil {
				rng := rand.New(rand.NewPCG(c.rng.Uint64(), 4))
				c.actors.Go(func() { c.sender(ctx, f, rng) })
			}
		}
		if c.faulty {
			rng := rand.New(rand.NewPCG(c.rng.Uint64(), 5))
			if c.storm != nil {
				c.actors.Go(func() { c.rage(ctx) })
			} else {
				c.actors.Go(func() { c.trouble(ctx, rng) })
			}
		}
		timeout := time.NewTimer(time.Duration(100+c.rng.IntN(2500)) * time.Millisecond)
		select {
		case <-c.crashed:
		case <-timeout.C:
			if c.rng.IntN(3) > 0 && !c.off { // it may have crashed at this very moment
				c.crash("idle")
			}
		}
		timeout.Stop()
		cancel()
		c.actors.Wait()
	}
	c.end(t, l, last)
}

// end closes the log, or throws away what a crash has left of the process.
func (c *crashLife) end(t testing.TB, l *Log, last bool) {
	clean := !c.off
	c.brokenUntil, c.ending = time.Time{}, true
	closing := c.hits()
	if c.storm != nil && !last && c.storm.rng.IntN(3) == 0 {
		c.storm.begin(c.machine)
	}
	for c.saving {
		time.Sleep(time.Millisecond)
	}
	if c.log != nil {
		c.judging = true
		c.view, _, _ = c.oracle.read(l)
		c.judging = false
	}
	for _, f := range c.targets {
		if t := l.targets.byName[f.name]; t != nil && c.log != nil { // else a power cut may bring back what this process did not find
			f.saved = t.savepoint()
		}
		if f.r != nil {
			_ = c.save(f.r.Close) // may tell of the crash
			f.r = nil
		}
	}
	switch err := l.Close(); {
	case err == nil && !c.off && clean:
		c.settled(c.view)
	case err != nil && !c.off && c.hits() == closing:
		c.fail("close the log on a good disk: %v", err)
	}
}

// committer commits until ctx ends.
func (c *crashLife) committer(ctx context.Context, l *Log, k int, rng *rand.Rand) {
	always := c.options.Sync == SyncAlways
	for pause(ctx, rng, c.pace) {
		n := 1 + rng.IntN(1+rng.IntN(40))
		times := 1
		if rng.IntN(50) == 0 {
			times = 40 // crosses pages
		}
		id := c.ask(n * times)
		app := l.AppenderV2(ctx)
		for i := range n * times {
			ls := c.series(k, i)
			if _, err := app.Append(0, ls, 0, int64(id), crashValue(id, i), nil, nil, storage.AppendV2Options{}); err != nil {
				c.fail("append: %v", err)
			}
		}
		if c.evicts && id%3 == 0 {
			c.forget(l.series, uint64(id))
		}
		c.committing++
		err := app.Commit()
		if c.committing--; err == nil {
			c.ended("commit")
		}
		time.Sleep(time.Duration(k)) // one fsync answers several at the same instant: in the order of their numbers
		if c.off {
			return // no caller hears the answer
		}
		c.answer(id, err, always)
		c.note("commit", crashIndex(id), fmt.Sprint(err))
	}
}

// forget makes the log forget a quarter of its series, also those of open batches.
func (c *crashLife) forget(m *seriesMap, id uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.byRef.Len()
	m.forgetLocked(func(s *Series) bool { return (s.ref+id)%4 == 0 })
	c.tally.Forgotten += before - m.byRef.Len()
}

// series is the i-th series of a committer.
func (c *crashLife) series(k, i int) labels.Labels {
	if i < len(c.labels[k]) {
		return c.labels[k][i]
	}
	return labels.FromStrings("__name__", "m", "c", crashIndex(k), "i", crashIndex(i))
}

// trouble makes the disk fail now and then.
func (c *crashLife) trouble(ctx context.Context, rng *rand.Rand) {
	for pause(ctx, rng, time.Second) {
		c.brokenErr = pick(rng, syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS)
		spell := 600 * time.Millisecond
		if c.full = rng.IntN(4) == 0; c.full {
			c.brokenErr, spell = syscall.ENOSPC, 4*time.Second
		}
		c.brokenUntil = time.Now().Add(time.Duration(rng.Int64N(int64(spell))))
	}
}

// pause waits for about so long, for twice as long at most; false if ctx ends meanwhile.
func pause(ctx context.Context, rng *rand.Rand, about time.Duration) bool {
	timer := time.NewTimer(time.Duration(rng.Int64N(2 * int64(about))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
