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
	"hwsagent/wal/queue"
)

// orphanGrace is the time after a start for which even overdue orphans are kept, because
// the agent opens its targets one after another.
const orphanGrace = 10 * time.Minute

// targetsOptions are the settings of a registry.
type targetsOptions struct {
	Logger    *slog.Logger
	Now       func() time.Time // nil: time.Now
	OrphanTTL time.Duration    // as Settings.OrphanTTL

	// Durable returns the last durable commit of the log; nil: unknown. Savepoints record it,
	// so that a later start can tell damage from samples lost to a power cut.
	Durable func() Mark

	// Segments is locked while an orphan is removed, so that no segment is removed meanwhile. It is locked before targets.mu. nil: no lock is
	// needed.
	Segments sync.Locker
}

// targets is the registry of all targets of the log. A target that is neither enrolled nor open is an orphan: its entry was
// removed from the configuration, or not read yet. It keeps its queue for OrphanTTL. All methods are safe for concurrent use.
type targets struct {
	o      targetsOptions
	store  *savefile.Store
	opened time.Time // with a monotonic reading
	fresh  bool      // there were no savepoints

	// mu is held while targets are added, removed or renamed, until that is durable. It is taken before store.mu.
	mu sync.Mutex

	stateMu   sync.Mutex // guards the following fields; taken after mu and store.mu, never held during I/O
	byName    map[string]*target
	ttl       time.Duration
	waiting   bool // keep all segments until Enroll, because a target with a lost savepoint may need them
	undurable bool // the savepoints that Open found are not durable yet: keep all segments, because a power cut may take savepoints back
}

// openTargets reads all savepoints in dir, which the caller must close. It does not change files.
// An unreadable savepoint is not an error: its target restarts at the oldest data in the log. A
// savepoint of a newer format version is an error.
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
	ts := &targets{o: o, opened: time.Now(), ttl: o.OrphanTTL, byName: map[string]*target{}}
	store, saved, err := savefile.Open(dir, o.Logger, ts.records)
	if err != nil {
		return nil, err
	}
	ts.store, ts.fresh, ts.waiting = store, saved.Fresh(), saved.Log.Lost
	for name, body := range saved.Targets {
		st, err := queue.DecodeSavepoint(body)
		if err != nil { // its checksum is right, so not this program wrote it
			o.Logger.Error("A savepoint has an unknown content: the target gets everything that the log has", "target", name, "err", err)
			store.SetLost(true)
			ts.waiting = true
			continue
		}
		t := newTarget(store, name, st)
		t.doubt = saved.Bad > 0
		ts.byName[name] = t
	}
	if saved.Bad > 0 {
		o.Logger.Error("Savepoints are damaged: targets may get some samples twice", "slots", saved.Bad)
	}
	return ts, nil
}

// begin makes the savepoints durable that openTargets found, because the previous process may have been
// killed before it synced them, and applies the consequences of damage.
func (ts *targets) begin(head Mark) error {
	for _, t := range ts.all() {
		t.mu.Lock()
		t.resolveLocked(head)
		t.mu.Unlock()
	}
	switch {
	case head.Commit == 0:
		// The log has no commits: a process ended while it was creating the files.
		ts.store.SetLost(false)
		ts.waiting = false
	case ts.fresh:
		// The files are created before the first commit, so they were removed from outside.
		ts.o.Logger.Error("The files of savepoints are missing: each target gets everything that the log has")
		ts.store.SetLost(true)
		ts.waiting = true
	}
	if head.Commit > 0 && slices.ContainsFunc(ts.all(), func(t *target) bool { return t.savepoint().Start.Log != head.Log }) {
		ts.waiting = true // a target whose position is in another log gets everything that this log has
	}
	err := ts.store.Flush(false)
	switch {
	case err == nil:
	case head.Commit == 0, ts.fresh:
		return fmt.Errorf("make savepoints durable: %w", err)
	default:
		// They were read a moment ago, so a process that starts now finds them, too. A power cut may still take them: lowest
		// keeps all segments until a flush succeeds. A full disk must not keep the log's samples from being sent.
		ts.stateMu.Lock()
		ts.undurable = true
		ts.stateMu.Unlock()
		ts.o.Logger.Error("Cannot make the savepoints durable; after a power cut targets may get some samples twice. Retrying each second", "err", err)
	}
	return nil
}

// all returns all targets, ordered by name.
func (ts *targets) all() []*target {
	ts.stateMu.Lock()
	defer ts.stateMu.Unlock()
	var all []*target
	for _, name := range slices.Sorted(maps.Keys(ts.byName)) {
		all = append(all, ts.byName[name])
	}
	return all
}

// records yields all targets to the store.
func (ts *targets) records(yield func(savefile.Target) bool) {
	for _, t := range ts.all() {
		if !yield(t) {
			return
		}
	}
}

// highest returns the greatest commit number and the greatest total of all savepoints of
// that log, or of any log if the ID is zero; zero if there is none. These commits were
// acknowledged, so those missing on the disk were lost to a power cut.
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

// durable returns the last durable commit of that log that savepoints record. Commits up to it that are missing on the
// disk were not lost to a power cut.
func (ts *targets) durable(log ID) Mark {
	if d := ts.store.Durable(); d.Log == log {
		return d
	}
	return Mark{}
}

// serve reports whether any savepoint belongs to that log.
func (ts *targets) serve(log ID) bool {
	return slices.ContainsFunc(ts.all(), func(t *target) bool { return t.savepoint().Start.Log == log })
}

// lowest returns the oldest segment that any target, including orphans, needs according to
// its durable savepoint; ok is false if there are no targets.
func (ts *targets) lowest() (number int, ok bool) {
	ts.stateMu.Lock()
	keep := ts.waiting || ts.undurable
	ts.stateMu.Unlock()
	if keep {
		return 0, true
	}
	for _, t := range ts.all() {
		if at := t.needs(); !ok || at < number {
			number, ok = at, true
		}
	}
	return number, ok
}

// dropThrough drops all samples up to and including end: for every target behind end,
// samples without a final outcome count as dropped for the budget, and the savepoint
// moves to end. The change is durable when dropThrough returns nil; only then may the
// caller remove files. After an error the caller may retry.
func (ts *targets) dropThrough(end Mark) error {
	for _, t := range ts.all() {
		if n, moved := t.drop(end, queue.Budget); moved {
			ts.o.Logger.Warn("Dropping undelivered samples for the disk budget",
				"target", t.name, "samples", n, "segment", end.Segment)
		}
	}
	return ts.store.Flush(false)
}

// closeDropped makes all lanes close the segments that the log has dropped.
func (ts *targets) closeDropped() {
	for _, t := range ts.all() {
		for _, l := range t.reading() {
			l.closeDropped()
		}
	}
}

// enforceBacklog drops the oldest segments for each target whose backlog is larger than its
// MaxBacklog, for that target only. The log calls it each second.
func (ts *targets) enforceBacklog(t tail) {
	for _, target := range ts.all() {
		limit := target.backlogLimit()
		if limit <= 0 {
			continue
		}
		sp := target.savepoint()
		end, ok := sp.BacklogEnd(t.segments(), t.head(), limit)
		if !ok {
			continue
		}
		if n, moved := target.drop(end, queue.Budget); moved {
			ts.o.Logger.Warn("Dropping undelivered samples beyond the target's max_backlog",
				"target", target.name, "samples", n, "max_backlog", limit, "segment", end.Segment)
			ts.store.Write(target) // the sync in the next second reports an error
		}
	}
}

// Orphan is a target that is neither enrolled nor open, because its entry was removed from the
// configuration. The log keeps its queue for Settings.OrphanTTL.
type Orphan struct {
	Name         string
	Since        time.Time     // when it was last enrolled or open, to the hour
	Left         time.Duration // remaining time until the queue is removed; 0: never removed
	Ledger       queue.Ledger
	PendingBytes int64
}

// Orphans lists the orphans with pending samples, ordered by name.
func (l *Log) Orphans() []Orphan {
	head, segments := l.head(), l.index.segments()
	ttl := l.targets.orphanTTL()
	var orphans []Orphan
	for _, t := range l.targets.all() {
		since, orphan := t.orphaned()
		if !orphan {
			continue
		}
		if ledger := t.ledger(head); ledger.Pending > 0 {
			o := Orphan{Name: t.name, Since: since, Ledger: ledger, PendingBytes: t.pendingBytes(segments, head)}
			if ttl > 0 {
				o.Left = max(ttl-l.targets.o.Now().Sub(since), time.Second)
			}
			orphans = append(orphans, o)
		}
	}
	return orphans
}

// Account returns the ledger of the named target, open or not, and its pending bytes of the
// log; zero for an unknown target.
func (l *Log) Account(name string) (ledger queue.Ledger, pending int64) {
	head, segments := l.head(), l.index.segments()
	t := l.targets.get(name)
	if t == nil {
		return queue.Ledger{}, 0
	}
	return t.ledger(head), t.pendingBytes(segments, head)
}

// get returns the target of that name; nil if there is none.
func (ts *targets) get(name string) *target {
	ts.stateMu.Lock()
	defer ts.stateMu.Unlock()
	return ts.byName[name]
}

// set sets the target of that name; nil removes it.
func (ts *targets) set(name string, t *target) {
	ts.stateMu.Lock()
	defer ts.stateMu.Unlock()
	if ts.byName[name] = t; t == nil {
		delete(ts.byName, name)
	}
}

// save makes all changed savepoints durable, and removes overdue orphans. The log calls it
// each second.
func (ts *targets) save() error {
	ts.touch()
	err := ts.store.Check()
	if refused := ts.store.Flush(true); refused != nil {
		err = errors.Join(err, refused)
	} else {
		ts.stateMu.Lock()
		ts.undurable = false
		ts.stateMu.Unlock()
	}
	return errors.Join(err, ts.expire())
}

// touch records that targets are in use, and passes the durable end of the log to the store.
func (ts *targets) touch() {
	all := ts.all()
	for _, t := range all {
		t.touch(ts.o.Now())
	}
	if len(all) > 0 {
		ts.store.Learn(ts.o.Durable())
	}
}

// overdue reports whether the target is an orphan that has been one for ttl, and since when it is one.
func (ts *targets) overdue(t *target, ttl time.Duration) (since time.Time, is bool) {
	since, orphan := t.orphaned()
	return since, orphan && ts.o.Now().Sub(since) >= ttl
}

// expire removes overdue orphans. If the disk refuses to remove one, that one still needs its segments.
func (ts *targets) expire() error {
	ttl := ts.orphanTTL()
	if ttl <= 0 || time.Since(ts.opened) < min(orphanGrace, ttl) {
		return nil
	}
	due := func(t *target) bool { _, is := ts.overdue(t, ttl); return is }
	if !slices.ContainsFunc(ts.all(), due) {
		return nil // commits that need room do not wait
	}
	if ts.o.Segments != nil {
		ts.o.Segments.Lock()
		defer ts.o.Segments.Unlock()
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var errs []error
	for _, t := range ts.all() {
		since, is := ts.overdue(t, ttl)
		if !is {
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

// removeLocked removes a target and its savepoint. After an error the target is unchanged.
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

// setOrphanTTL sets the time for which orphans keep their queue; 0 means forever.
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

// close makes all savepoints durable and closes the files. Readers should be closed
// before.
func (ts *targets) close() error {
	ts.touch()
	return ts.store.Close()
}
