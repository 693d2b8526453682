package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/savefile"
	"hwsagent/wal/internal/segment"
)

// orphanGrace is how long after the start even an overdue orphan is kept: the agent
// opens its targets one after the other.
const orphanGrace = 10 * time.Minute

// targetsOptions are the settings of a registry.
type targetsOptions struct {
	Logger    *slog.Logger
	Now       func() time.Time // nil: time.Now
	OrphanTTL time.Duration    // how long agents run without a target before its queue goes; 0: for ever

	// Durable is the last commit of the log that a power cut cannot take; nil: not known.
	// Savepoints keep it, so that samples that are missing later are known to be.
	Durable func() Mark
}

// targets is the registry of everything that still wants the log. A target that is neither enrolled nor open is an orphan (its entry is
// gone from the configuration, or not read yet); it keeps its queue until agents have run
// for OrphanTTL without it. All methods are safe for concurrent use.
type targets struct {
	o      targetsOptions
	store  *savefile.Store
	opened time.Time // with a monotonic reading, as is looked

	// mu is held while targets come, go or are renamed, also while that becomes durable. It is taken before store.mu.
	mu sync.Mutex

	stateMu sync.Mutex // guards what follows; taken after mu and store.mu, never held during I/O
	byName  map[string]*target
	ttl     time.Duration
	looked  time.Time // until when the time of orphans is counted
	waiting bool      // for an Enroll, before which no segment goes that a lost target may want
}

// openTargets reads all savepoints in dir, which stays the caller's. It changes nothing yet. A
// savepoint that is unreadable is no error: its target gets the oldest data that is kept. One
// of a newer format version is.
func openTargets(dir disk.Directory, o targetsOptions) (*targets, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Durable == nil {
		o.Durable = func() Mark { return Mark{} }
	}
	now := time.Now()
	ts := &targets{o: o, opened: now, looked: now, ttl: o.OrphanTTL, byName: map[string]*target{}}
	store, saved, err := savefile.Open(dir, o.Logger, ts.records, decodeSavepoint)
	if err != nil {
		return nil, err
	}
	ts.store, ts.waiting = store, saved.Log.Lost.Any()
	for name, kept := range saved.Targets {
		t := newTarget(store, name, kept.Value)
		t.doubt = kept.Doubt
		ts.byName[name] = t
	}
	if saved.Damaged > 0 {
		o.Logger.Error("Savepoints are damaged: targets may get some of what the log has twice", "places", saved.Damaged)
	}
	return ts, nil
}

// begin makes durable what openTargets found, which a process that was killed may not have got as far as
// doing, and what follows from damage.
func (ts *targets) begin(head Mark) error {
	for _, t := range ts.all() {
		t.mu.Lock()
		t.resolveLocked(head)
		t.mu.Unlock()
	}
	switch {
	case head.Commit == 0:
		// Nothing was ever collected: a process ended while it was making the files.
		ts.store.FoundAll()
		ts.waiting = false
	case ts.store.Fresh():
		// The files are made before anything is collected, so somebody has removed them.
		ts.o.Logger.Error("The files of savepoints are missing: each target gets everything that the log has")
		ts.store.MissAll()
		ts.waiting = true
	}
	if err := ts.store.Flush(false); err != nil {
		return fmt.Errorf("make savepoints durable: %w", err)
	}
	return nil
}

// all is every target, in the order of names.
func (ts *targets) all() []*target {
	ts.stateMu.Lock()
	defer ts.stateMu.Unlock()
	var all []*target
	for _, name := range slices.Sorted(maps.Keys(ts.byName)) {
		all = append(all, ts.byName[name])
	}
	return all
}

// records are all for the store.
func (ts *targets) records(yield func(savefile.Target) bool) {
	for _, t := range ts.all() {
		if !yield(t) {
			return
		}
	}
}

// highest has the greatest commit number and the greatest total that any savepoint
// knows of in that log, or in any if the ID is zero; it is zero if there is none. What
// a savepoint knows was acknowledged, so what the disk has less was lost to a power
// cut.
func (ts *targets) highest(log ID) Mark {
	var top Mark
	for _, t := range ts.all() {
		sp := t.savepoint()
		marks := []Mark{sp.Start, sp.High}
		for _, r := range sp.Done {
			marks = append(marks, r.To)
		}
		for _, m := range marks {
			if m.Log == (ID{}) || log != (ID{}) && m.Log != log {
				continue
			}
			top = segment.Later(top, m)
		}
	}
	if d := ts.store.Durable(); d.Log != (ID{}) && (log == (ID{}) || d.Log == log) {
		top = segment.Later(top, d)
	}
	return top
}

// durable is the last commit that was durable in that log, as far as the savepoints tell. What the disk has less was
// not lost to a power cut.
func (ts *targets) durable(log ID) Mark {
	if d := ts.store.Durable(); d.Log == log {
		return d
	}
	return Mark{}
}

// serve reports whether any savepoint is one of that log.
func (ts *targets) serve(log ID) bool {
	return slices.ContainsFunc(ts.all(), func(t *target) bool { return t.savepoint().Start.Log == log })
}

// lowest is the oldest segment that any target still needs by its durable savepoint,
// orphans included; not ok if there are no targets.
func (ts *targets) lowest() (number int, ok bool) {
	ts.stateMu.Lock()
	waiting := ts.waiting
	ts.stateMu.Unlock()
	if waiting {
		return 0, true
	}
	for _, t := range ts.all() {
		if at := t.needs(); !ok || at < number {
			number, ok = at, true
		}
	}
	return number, ok
}

// dropThrough lets go everything up to and including end: for every target behind
// it, what has no final outcome yet counts as dropped for the budget, and the
// savepoint moves to end. That is durable when dropThrough returns nil, and only then
// may the caller unlink. After an error it may be called again.
func (ts *targets) dropThrough(end Mark) error {
	for _, t := range ts.all() {
		if n, moved := t.drop(end, Budget); moved {
			ts.o.Logger.Warn("Dropping undelivered samples for the disk budget",
				"target", t.name, "samples", n, "segment", end.Segment)
		}
	}
	return ts.store.Flush(false)
}

// enforceBacklog lets the oldest segments go, each target for itself only, while its
// backlog is larger than its MaxBacklog. The log calls it each second.
func (ts *targets) enforceBacklog(t tail) {
	for _, target := range ts.all() {
		limit := target.backlogLimit()
		if limit <= 0 {
			continue
		}
		end, ok := backlogEnd(t, target.savepoint(), limit)
		if !ok {
			continue
		}
		if n, moved := target.drop(end, Budget); moved {
			ts.o.Logger.Warn("Dropping undelivered samples beyond the target's max_backlog",
				"target", target.name, "samples", n, "max_backlog", limit, "segment", end.Segment)
			ts.store.Write(target) // the next second's sync tells of an error
		}
	}
}

// backlogEnd is where a target with that savepoint must move to so that no more than
// limit bytes wait for it, or as few as can be: the beginning of a segment. It is not ok if
// the target need not or cannot move.
func backlogEnd(t tail, sp Savepoint, limit int64) (end Mark, ok bool) {
	segments, head := t.segments(), t.head()
	waits := pendingBytes(segments, &sp, head)
	for _, s := range segments {
		if waits <= limit {
			break
		}
		acked := sp.Acked()
		if s.Number <= acked.Segment || s.Number > head.Segment {
			continue
		}
		if !s.Known() || s.Header.Commit <= acked.Commit {
			continue // a damaged header cannot say where it is: move beyond it, or stay before
		}
		end, ok = s.Header.Before(), true
		sp.settle(end)
		waits = pendingBytes(segments, &sp, head)
	}
	return end, ok
}

// pendingBytes is how many bytes of the segments hold what has no final outcome, up to head.
func pendingBytes(segments []segment.Info, sp *Savepoint, head Mark) int64 {
	var n int64
	for _, r := range sp.open(head) {
		n += bytesAfter(segments, r.From, r.To)
		if r.To.Commit < head.Commit {
			n -= bytesAfter(segments, r.To, r.To)
		}
	}
	return max(n, 0)
}

// bytesAfter is how many bytes of the segments lie after from, up to the end of that in
// which end is.
func bytesAfter(segments []segment.Info, from, end Mark) int64 {
	var n int64
	for _, s := range segments {
		switch {
		case s.Number < from.Segment || s.Number > end.Segment:
		case s.Number == from.Segment:
			n += max(0, s.End-from.Offset)
		default:
			n += s.End
		}
	}
	return n
}

// Orphan is a target that is neither enrolled nor open: its entry is gone from the
// configuration. Its queue is kept until agents have run for Settings.OrphanTTL without it.
type Orphan struct {
	Name         string
	Since        time.Time     // when it was last wanted, by the clock of that time
	Left         time.Duration // for how long it is kept yet, while an agent runs; 0: for ever
	Ledger       Ledger
	PendingBytes int64
}

// Orphans are those that have something pending, by name.
func (l *Log) Orphans() []Orphan {
	head, segments := l.head(), l.index.segments()
	ttl := l.targets.orphanTTL()
	var orphans []Orphan
	for _, t := range l.targets.all() {
		since, seen, orphan := t.orphaned()
		if !orphan {
			continue
		}
		if ledger := t.ledger(head); ledger.Pending > 0 {
			o := Orphan{Name: t.name, Since: since, Ledger: ledger, PendingBytes: t.pendingBytes(segments, head)}
			if ttl > 0 {
				o.Left = max(ttl-seen, time.Second)
			}
			orphans = append(orphans, o)
		}
	}
	return orphans
}

// Account is the ledger of the target with that name, open or not, and how many bytes of
// the log it has still to get; zero for one that the log does not know.
func (l *Log) Account(name string) (ledger Ledger, pending int64) {
	head, segments := l.head(), l.index.segments()
	t := l.targets.get(name)
	if t == nil {
		return Ledger{}, 0
	}
	return t.ledger(head), t.pendingBytes(segments, head)
}

// get is the target of that name; nil if there is none.
func (ts *targets) get(name string) *target {
	ts.stateMu.Lock()
	defer ts.stateMu.Unlock()
	return ts.byName[name]
}

// set says which target has that name; nil: none has.
func (ts *targets) set(name string, t *target) {
	ts.stateMu.Lock()
	defer ts.stateMu.Unlock()
	if ts.byName[name] = t; t == nil {
		delete(ts.byName, name)
	}
}

// save makes all savepoints durable that have changed, and removes orphans that are
// overdue. The log calls it each second.
func (ts *targets) save() error {
	ts.touch(false)
	return errors.Join(ts.store.Check(), ts.store.Flush(true), ts.expire())
}

// touch notes which targets are open, and for how long the others have not been.
func (ts *targets) touch(ending bool) {
	ts.stateMu.Lock()
	now := time.Now()
	passed := now.Sub(ts.looked)
	ts.looked = now
	ts.stateMu.Unlock()
	all := ts.all()
	for _, t := range all {
		t.touch(ts.o.Now(), passed, ending)
	}
	if len(all) > 0 {
		ts.store.Learn(ts.o.Durable())
	}
}

// expire removes overdue orphans.
func (ts *targets) expire() error {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ttl := ts.orphanTTL()
	if ttl <= 0 || time.Since(ts.opened) < min(orphanGrace, ttl) {
		return nil
	}
	var errs []error
	for _, t := range ts.all() {
		since, seen, orphan := t.orphaned()
		if !orphan || seen < ttl {
			continue
		}
		if err := ts.removeLocked(t); err != nil {
			errs = append(errs, err)
			continue
		}
		ts.o.Logger.Warn("Removed the queue of a target that is no longer configured",
			"target", t.name, "last_open", since, "acknowledged", t.position().Position)
	}
	return errors.Join(errs...)
}

// removeLocked removes a target and its savepoint. After an error it is as it was.
func (ts *targets) removeLocked(t *target) error {
	err := ts.store.End(t.name, nil, func() {
		t.retire(true)
		ts.set(t.name, nil)
	})
	if err != nil {
		t.retire(false)
		ts.set(t.name, t)
		ts.store.Renew()
		return fmt.Errorf("remove savepoint of target %q: %w", t.name, err)
	}
	return nil
}

// setOrphanTTL changes the time that orphans keep their queue; 0 means for ever.
func (ts *targets) setOrphanTTL(ttl time.Duration) {
	ts.stateMu.Lock()
	defer ts.stateMu.Unlock()
	ts.ttl = ttl
}

func (ts *targets) orphanTTL() time.Duration {
	ts.stateMu.Lock()
	defer ts.stateMu.Unlock()
	return ts.ttl
}

// close makes everything durable and closes the files. Readers should be closed by
// then.
func (ts *targets) close() error {
	ts.touch(true)
	return ts.store.Close()
}
