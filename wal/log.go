package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/internal/segment"
)

// Names in the directory of a log.
const (
	segmentDir   = "wal"        // the segments, named as tsdb/wlog names them
	savepointDir = "savepoints" // the files of package savefile
	lockName     = "lock"       // held by the process that owns the directory
)

// Errors of the log besides ErrClosed. Other errors wrap them: compare with errors.Is.
var (
	ErrFull   = errors.New("log is full")
	ErrLocked = disk.ErrLocked
	ErrUnsafe = disk.ErrUnsafe // another user may control the directory
)

// SyncAlways as Settings.Sync makes Commit return only after fsync.
const SyncAlways time.Duration = -1

// OnFull is the policy for an exhausted disk budget.
type OnFull string

// The policies for an exhausted disk budget.
const (
	DropOldest OnFull = "drop_oldest" // remove the oldest segment, and count its samples for each target that needed them
	Reject     OnFull = "reject"      // fail Commit with ErrFull; keep all acknowledged samples
)

// Settings may change while the log is open. The zero value is usable.
type Settings struct {
	// Sync is the interval at which the log becomes durable, which bounds the loss in a power
	// cut. 0 means one second; SyncAlways means in each Commit, before it returns.
	Sync time.Duration

	MaxBytes     int64         // of all segments together; 0: no limit
	MinFreeBytes int64         // the log does not grow while the file system has less free space; 0: no limit
	OnFull       OnFull        // "" means DropOldest
	Retain       time.Duration // how long delivered segments are kept after they were sealed, the budget permitting
	OrphanTTL    time.Duration // time after which the queue of a target neither enrolled nor open is removed; 0: never
}

func (s Settings) always() bool { return s.Sync < 0 }

// interval is the interval of fsyncs, and of retries after an error.
func (s Settings) interval() time.Duration {
	if s.Sync > 0 {
		return s.Sync
	}
	return time.Second
}

// Options are the settings and the dependencies of a log.
type Options struct {
	// Dir is the log's directory. Open creates it if it does not exist. It must belong to
	// this user, and no other user may have write access.
	Dir string

	// Beside names directories inside Dir that the log does not use but that must be as safe as
	// its own: Open fails with ErrUnsafe if one of them exists and is unsafe. Open does not create
	// them, and they are not checked again.
	Beside []string

	Settings

	SegmentBytes int64                 // size at which a segment ends, at least, the budget permitting; 0: 8 MiB
	Logger       *slog.Logger          // nil: no log
	Registerer   prometheus.Registerer // of the hwsagent_wal_* metrics; nil: not registered
	Now          func() time.Time      // wall clock, for times shown to users and samples too far ahead; nil: time.Now

	// Every returns a channel that receives a tick each d, the first within d, and a function that
	// stops the ticks; nil: a [time.Ticker]. One Every for a whole process lets it wake less often.
	Every func(d time.Duration) (ticks <-chan time.Time, stop func())

	// wrap lets tests inject faults into the directory of that name, or replace it.
	wrap func(name string, d disk.Directory) disk.Directory

	// syncPath makes the entries of the directory at a path durable. Tests replace it to record
	// its calls and to make them fail.
	syncPath func(path string) error
}

// defaultSegmentBytes is small because the budget removes whole segments, and because a
// resuming reader reads a segment from its beginning.
const defaultSegmentBytes = 8 << 20

// Log is an open log. It is safe for concurrent use.
type Log struct {
	logger  *slog.Logger
	base    *disk.Root     // Options.Dir
	inUse   []*disk.Root   // base, and the roots of dir and saves
	dir     disk.Directory // of the segments
	saves   disk.Directory // of the savepoints
	lock    *disk.Lock
	series  *seriesMap
	index   *index
	writer  *writer
	targets *targets
	budget  *budget
	metrics *metrics

	refreshAgain func() error // retries refresh; nil once it has succeeded. Only keep uses it, and Close after keep has ended

	cancel context.CancelFunc
	tasks  sync.WaitGroup
	once   sync.Once
	err    error // of Close
}

// housekeeping is how often savepoints become durable and the budget is checked.
const housekeeping = time.Second

// Open opens the log in o.Dir exclusively: the error wraps ErrLocked, and names the process,
// if another one has the log open. Goroutines of the log run until Close.
func Open(o Options) (*Log, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Every == nil {
		o.Every = func(d time.Duration) (<-chan time.Time, func()) { t := time.NewTicker(d); return t.C, t.Stop }
	}
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	if o.syncPath == nil {
		o.syncPath = disk.SyncPath
	}
	l := &Log{logger: o.Logger, series: newSeriesMap(), index: &index{}}
	if err := l.open(o); err != nil {
		return nil, errors.Join(fmt.Errorf("open log: %w", err), l.release())
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	l.tasks.Go(func() { l.writer.run(ctx, o.Every) })
	l.tasks.Go(func() {
		ticks, stop := o.Every(housekeeping)
		defer stop()
		l.keep(ctx, ticks)
	})
	return l, nil
}

// OwnerError means that a directory belongs to another user. It is an [ErrUnsafe].
type OwnerError = disk.OwnerError

// Directories returns the directories that the log makes inside its own, where it writes all its files but the lock.
func Directories() []string { return []string{segmentDir, savepointDir} }

// CheckDirectory returns an error if [Open] would refuse the directory, or one of these inside it, as unsafe. What does not
// exist is safe. It changes nothing.
func CheckDirectory(dir string, beside []string) error {
	for _, inner := range slices.Concat([]string{""}, Directories(), beside) {
		if err := disk.Check(filepath.Join(dir, inner)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (l *Log) open(o Options) (err error) {
	if l.base, err = disk.Open(o.Dir, o.syncPath); err != nil {
		return err
	}
	l.inUse = append(l.inUse, l.base)
	if err := CheckDirectory(o.Dir, o.Beside); err != nil { // before any change, even to the lock file
		return err
	}
	if l.lock, err = l.base.Lock(lockName); err != nil {
		return err
	}
	if why := l.lock.Unnamed; why != nil {
		l.logger.Warn("The lock file does not name this process; the lock holds", "err", why)
	}
	if l.dir, err = l.sub(o, segmentDir); err != nil {
		return err
	}
	if l.saves, err = l.sub(o, savepointDir); err != nil {
		return err
	}
	l.budget = &budget{dir: l.dir, index: l.index, logger: l.logger, settings: o.Settings}
	l.targets, err = openTargets(l.saves, targetsOptions{
		Logger: o.Logger, Now: o.Now, OrphanTTL: o.OrphanTTL, Durable: l.durable, Segments: &l.budget.mu,
	})
	if err != nil {
		return fmt.Errorf("read savepoints in %s: %w", filepath.Join(o.Dir, savepointDir), err)
	}
	l.metrics = newMetrics(o.Registerer, l)
	if err := l.metrics.register(); err != nil {
		return err
	}
	l.budget.targets, l.budget.metrics = l.targets, l.metrics
	l.writer = &writer{
		dir: l.dir, logger: l.logger, series: l.series, index: l.index, metrics: l.metrics, now: o.Now,
		makeRoom: l.budget.makeRoom, full: l.budget.full, fits: l.budget.fits, config: l.budget.config,
		inPlace: l.inPlace, segmentBytes: o.SegmentBytes, rolled: make(chan struct{}, 1),
	}
	l.writer.cond.L = &l.writer.mu
	if err := l.restore(); err != nil {
		return err
	}
	if err := l.targets.begin(l.head()); err != nil {
		return fmt.Errorf("keep savepoints in %s: %w: make the disk writable, with some space, and start again", filepath.Join(o.Dir, savepointDir), err)
	}
	return nil
}

// inPlace returns an error if a process started now would not find this log.
func (l *Log) inPlace() error {
	for _, d := range l.inUse {
		if err := d.InPlace(); err != nil {
			return err
		}
	}
	return nil
}

// sub opens a directory inside Options.Dir.
func (l *Log) sub(o Options, name string) (disk.Directory, error) {
	d, err := disk.Open(filepath.Join(o.Dir, name), o.syncPath)
	if err != nil {
		return nil, err
	}
	l.inUse = append(l.inUse, d)
	if o.wrap != nil {
		return o.wrap(name, d), nil
	}
	return d, nil
}

// Reader opens the queue of the named target, and creates the target if the log has none.
func (l *Log) Reader(name string, o ReaderOptions) (*Reader, error) {
	return l.targets.open(l, name, o)
}

// Reconfigure changes the settings. It never waits for the disk. The new budget is enforced within a second.
func (l *Log) Reconfigure(s Settings) {
	l.budget.configure(s)
	l.targets.setOrphanTTL(s.OrphanTTL)
}

// keep does the housekeeping at each tick until ctx ends.
func (l *Log) keep(ctx context.Context, ticks <-chan time.Time) {
	began := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.targets.store.Crowded():
			l.budget.note("save savepoints", l.targets.store.Flush(false))
		case <-ticks:
			l.series.evict(int64(time.Since(began) / time.Second))
			_ = l.retryRefresh() // which logs the error
			l.cutAgain()
			l.budget.note("save savepoints", l.targets.save())
			l.targets.enforceBacklog(l)
			if l.budget.enforce(0) {
				l.writer.rollNow()
			}
		}
	}
}

// Close makes all commits durable and releases the directory. Close readers first; after
// Close their Next returns ErrClosed. Further calls return the error of the first.
func (l *Log) Close() error {
	l.once.Do(func() {
		l.cancel()
		l.tasks.Wait()
		err := errors.Join(l.retryRefresh(), l.writer.shut())
		l.index.close()
		l.err = errors.Join(err, l.release())
	})
	return l.err
}

// release closes all parts that are open.
func (l *Log) release() error {
	var errs []error
	if l.targets != nil {
		errs = append(errs, l.targets.close())
	}
	if l.metrics != nil {
		l.metrics.unregister()
	}
	if l.dir != nil {
		errs = append(errs, l.dir.Close())
	}
	if l.saves != nil {
		errs = append(errs, l.saves.Close())
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Release())
	}
	if l.base != nil {
		errs = append(errs, l.base.Close())
	}
	return errors.Join(errs...)
}

// Status is a snapshot of a log.
type Status struct {
	Head     Mark          // the last commit
	First    int           // number of the oldest segment
	Segments int           // number of segment files
	Bytes    int64         // of these files
	Free     int64         // bytes free on the file system at the last check; 0: not checked yet
	Series   int           // label sets with a sample in the last hour, except those marked stale
	Sync     time.Duration // as in Settings; SyncAlways or more than 0
	MaxBytes int64         // as in Settings
	MinFree  int64         // Settings.MinFreeBytes
	OnFull   OnFull

	Appended uint64 // samples committed since Open
	Refused  uint64 // samples whose Commit failed since Open
	Written  int64  // bytes of commits since Open

	LowSince time.Time // start of the period with less than MinFree free; zero if enough is free or free space is unknown

	// Err is the reason why commits fail at present; nil if they succeed. Since is the
	// time of the first failure.
	Err   error
	Since time.Time
}

// Status returns a snapshot. It never waits for the disk.
func (l *Log) Status() Status {
	s := l.budget.config()
	st := Status{
		Head: l.head(), Series: l.series.size(), MaxBytes: s.MaxBytes, MinFree: s.MinFreeBytes, OnFull: s.policy(), Sync: s.Sync,
		Appended: l.metrics.appended.Load(), Refused: l.metrics.refused.Load(),
	}
	if !s.always() {
		st.Sync = s.interval()
	}
	st.Written = l.index.bytesWritten()
	st.First, st.Free, st.LowSince = l.first(), l.budget.free.Load(), l.budget.littleSince()
	st.Segments, st.Bytes = l.index.usage()
	st.Since, st.Err = l.index.trouble()
	return st
}

// The methods of tail.

func (l *Log) head() Mark                                { return l.index.mark() }
func (l *Log) safe() Mark                                { return l.index.durable() }
func (l *Log) wait(ctx context.Context, past Mark) error { return l.index.wait(ctx, past) }
func (l *Log) first() int                                { return l.index.first() }
func (l *Log) segments() []segment.Info                  { return l.index.segments() }
func (l *Log) isRefused(number uint64) bool              { return l.index.isRefused(number) }

func (l *Log) allSeries() *seriesMap { return l.series }

// broken judges by the last write: a read may succeed from the kernel's memory although the disk is gone. A disk that is full or
// read-only can still be read.
func (l *Log) broken() bool {
	_, err := l.index.trouble()
	return err != nil && !slices.ContainsFunc([]error{ErrFull, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS}, func(e error) bool { return errors.Is(err, e) })
}

func (l *Log) openSegment(n int) (segmentFile, error) {
	return l.dir.Open(segment.Name(n), os.O_RDONLY)
}
