package wal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/tools/tier"
	"hwsagent/wal/queue"
)

// sickness is what is wrong with a disk: from the n-th operation on, as the kernel
// counts them in the directories that are hit, for so long; 0 is that one operation.
type sickness struct {
	segments, saves bool // which are hit
	reads           bool // and not what changes something
	n               int
	lasts           time.Duration
	err             error
	short           int // bytes that a failing write writes all the same
}

func (s sickness) String() string {
	return fmt.Sprintf("segments=%v,saves=%v,reads=%v,n=%d,lasts=%v,short=%d,err=%v", s.segments, s.saves, s.reads, s.n, s.lasts, s.short, s.err)
}

// errors are what the operation fails with: one after the other from operation to
// operation, or each for each of them.
func (s sickness) errors() []error {
	all := []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS}
	switch i := s.n % len(all); {
	case s.reads:
		return []error{syscall.EIO}
	case exhaustive():
		return all
	default:
		return all[i : i+1]
	}
}

// TestEveryOperationForAWhile fails each operation on the files of a log that is used as
// ever, once or from then on for a while. What was acknowledged can be read, what failed
// does not come back, the ledgers add up, and the log is well within one sync interval
// after the disk is, with no restart.
func TestEveryOperationForAWhile(t *testing.T) {
	for _, where := range [][2]bool{{true, false}, {false, true}, {true, true}} {
		for _, cause := range []sickness{{}, {short: 300}, {reads: true}} {
			for _, interval := range []time.Duration{0, SyncAlways} {
				cause.segments, cause.saves = where[0], where[1]
				if cause.reads && !cause.segments {
					continue // a savepoint is read at the start only
				}
				t.Run(fmt.Sprintf("segments=%v,saves=%v,reads=%v,short=%d,sync=%v", where[0], where[1], cause.reads, cause.short, interval), func(t *testing.T) {
					t.Parallel()
					cause, fired, step := cause, 0, tier.Of(3, 1) // prime to the number of errors
					for _, cause.lasts = range []time.Duration{0, 2500 * time.Millisecond} {
						hit := true
						for cause.n = 1; hit; cause.n += step {
							for _, cause.err = range cause.errors() {
								synctest.Test(t, func(t *testing.T) { hit = sickLife(t, cause, interval) })
								if t.Failed() {
									t.Fatalf("with %v", cause)
								}
								if hit {
									fired++
								}
							}
						}
					}
					if t.Logf("%d faults", fired); fired*step < 30 {
						t.Errorf("only %d faults fired", fired)
					}
				})
			}
		}
	}
}

// sick is a log on a disk that is not well.
type sick struct {
	*testing.T
	oracle
	sickness
	o   Options
	log *Log

	mu    sync.Mutex // the log's goroutines ask, and so does the test
	ops   int
	begun bool      // reads fail only after the start
	hit   time.Time // when the first operation failed; zero: none did
	uncut bool

	readers [2]*Reader
	got     [2]map[int]bool
	at      [2]uint64
}

// sickLife lives a life of two processes. It tells whether an operation has failed.
func sickLife(t *testing.T, cause sickness, interval time.Duration) bool {
	segments, saves := newMemDir(), newMemDir()
	s := &sick{T: t, sickness: cause, o: memOptions(t, segments, saves), got: [2]map[int]bool{{}, {}}}
	s.oracle.orphaned = map[int]uint64{}
	s.oracle.fail = func(format string, args ...any) { t.Errorf(format, args...) }
	s.o.Sync, s.o.SegmentBytes, s.o.MaxBytes, s.o.Retain = interval, 1000, 16_000, 0
	for _, d := range []struct {
		hit bool
		*memDir
	}{{cause.segments, segments}, {cause.saves, saves}} {
		switch {
		case d.hit && cause.reads:
			d.unreadable = func(string, int64) error {
				_, err := s.ask("read")
				return err
			}
		case d.hit:
			d.fault = s.ask
		}
	}
	for range 2 {
		s.open()
		for i := range 14 {
			s.commit(1 + i)
			s.read(0, 10) // the other one is left behind, and the budget takes what it needs
			if i%5 == 4 {
				s.read(1, 3)
				time.Sleep(1100 * time.Millisecond)
			}
		}
		s.heal()
		s.read(0, 1000)
		s.close()
		s.session++
	}
	s.open()
	for k := range s.readers {
		s.read(k, 1000)
		g := s.readers[k].Ledger()
		var missing uint64
		for id, c := range s.commits {
			if c.fate == acked && !s.got[k][id] {
				missing += uint64(c.samples)
			}
		}
		if g.Pending != 0 || g.GivenUp() != g.Dropped[queue.Budget] || missing > g.Dropped[queue.Budget] {
			t.Errorf("reader %d has not got %d samples at the end: %+v", k, missing, g)
		}
	}
	s.close()
	was, _ := s.ill()
	return was
}

// ask fails an operation, if it is its turn.
func (s *sick) ask(op string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads && !s.begun {
		return 0, nil // what the disk refuses at the start counts as damage: see TestEveryOperation
	}
	s.ops++
	switch {
	case s.ops < s.n || s.lasts == 0 && s.ops > s.n, s.ops > s.n && time.Since(s.hit) > s.lasts:
		return 0, nil
	case s.hit.IsZero():
		s.hit = time.Now()
	}
	s.uncut = s.uncut || op == "truncate"
	return s.short, s.err
}

// ill reports whether an operation has failed, and whether the next may still.
func (s *sick) ill() (was, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.hit.IsZero(), !s.hit.IsZero() && time.Since(s.hit) <= s.lasts
}

// use makes l the log in use, none if it is nil.
func (s *sick) use(l *Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.begun = l, l != nil
}

// open opens the log and its readers. That may fail while the disk does, and then works.
func (s *sick) open() {
	s.Helper()
	for tries := 0; ; tries++ {
		err := s.tryOpen()
		if err == nil {
			return
		}
		if s.log != nil {
			for k, r := range s.readers {
				if r != nil {
					_ = r.Close() // may fail as well
				}
				s.readers[k] = nil
			}
			_ = s.log.Close()
			s.use(nil)
		}
		if !errors.Is(err, s.err) || tries > 5 {
			s.Fatalf("open: %v", err)
		}
		time.Sleep(time.Second)
	}
}

func (s *sick) tryOpen() (err error) {
	l, err := Open(s.o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	uncut := s.uncut
	s.mu.Unlock()
	s.reopened(l, crash{uncut: uncut}, newTally())
	s.use(l)
	for k := range s.readers {
		if s.readers[k], err = l.Reader(fmt.Sprint(k), ReaderOptions{StartAt: StartOldest}); err != nil {
			return err
		}
		sp := s.readers[k].Savepoint()
		s.at[k] = sp.Acked().Commit
	}
	return nil
}

// commit commits, which may fail only while the disk does, or until the log has tried again.
func (s *sick) commit(samples int) error {
	id := s.oracle.ask(samples)
	app := s.log.AppenderV2(context.Background())
	for i := range samples {
		ls := labels.FromStrings("__name__", "m", "i", crashIndex(i))
		if _, err := app.Append(0, ls, 0, int64(id), crashValue(id, i), nil, nil, storage.AppendV2Options{}); err != nil {
			s.Fatal(err)
		}
	}
	err := app.Commit()
	if was, _ := s.ill(); err != nil && !was {
		s.Errorf("commit on a good disk: %v", err)
	}
	s.answer(id, err, false)
	return err
}

// read delivers up to n commits to the k-th reader.
func (s *sick) read(k, n int) {
	s.Helper()
	r := s.readers[k]
	for ; n > 0 && s.at[k] < s.log.head().Commit; n-- {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		e, err := r.Next(ctx)
		cancel()
		if err != nil {
			s.Fatalf("reader %d after commit %d: %v", k, s.at[k], err)
		}
		if err := r.Reserve(e.End); err != nil {
			s.Fatalf("reserve: %v", err)
		}
		s.at[k] = e.End.Commit
		if id := s.identify(e); id >= 0 {
			if s.commits[id].over {
				s.Errorf("commit %d was refused, and reader %d got it", id, k)
			}
			s.got[k][id] = true
		}
		o := e.Missing
		o.Delivered = e.Count()
		r.Advance(e.End, o)
		if g := r.Ledger(); !g.Balanced() {
			s.Fatalf("ledger of reader %d: %+v", k, g)
		}
	}
}

// heal waits until the disk is well, and demands that the log is within one interval.
func (s *sick) heal() {
	s.Helper()
	for {
		s.mu.Lock()
		well := s.hit.IsZero() || time.Since(s.hit.Add(s.lasts)) > time.Second
		s.mu.Unlock()
		if well {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if st := s.log.Status(); st.Err != nil {
		s.Errorf("the disk has been well for a second: %v", st.Err)
	}
	if err := s.commit(2); err != nil {
		if _, is := s.ill(); !is {
			s.Errorf("the disk has been well for a second: %v", err)
		}
	}
}

// close closes the log, which may fail only while the disk does.
func (s *sick) close() {
	s.Helper()
	log := s.log
	s.use(nil)
	s.view, _, _ = s.oracle.read(log)
	var errs []error
	for _, r := range s.readers {
		errs = append(errs, r.Close())
	}
	if err := errors.Join(append(errs, log.Close())...); err != nil && !errors.Is(err, s.err) {
		s.Errorf("close: %v", err)
	}
}
