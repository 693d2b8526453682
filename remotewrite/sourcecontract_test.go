package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal"
	"hwsagent/wal/queue"
)

// sourceUnderTest is a log with one target: that of the tests, or the real one.
type sourceUnderTest interface {
	append(samples ...smp) wal.Mark
	lane(l queue.Lane) Source
	Split() bool
	restart() // an orderly one
	kill()
	outcome() queue.Outcome
}

// TestSourcesBehaveAlike: the log of the tests does what the real log does, for the same random calls. The tests of the
// queue are worth only as much as this.
func TestSourcesBehaveAlike(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				onDisk := &realSource{t: t, dir: memoryDir(t)}
				onDisk.open()
				defer func() { onDisk.close() }()
				fake := &memSource{memLog: newMemLog(t)}
				fake.backlog = &memBacklog{m: fake.memLog}
				a, b := sourceCalls(t, seed, fake), sourceCalls(t, seed, onDisk)
				for i := range a {
					if a[i] != b[i] {
						t.Fatalf("call %d: the log of the tests: %s\nthe real log: %s\nbefore:\n%s", i, a[i], b[i], strings.Join(b[max(0, i-25):i], "\n"))
					}
				}
			})
		})
	}
}

// TestSourcesKeepReservations: a reservation survives a kill in both logs, on each lane, also one that adds nothing but shards.
func TestSourcesKeepReservations(t *testing.T) {
	for lane := range queue.Lane(2) {
		fake := &memSource{memLog: newMemLog(t)}
		fake.backlog = &memBacklog{m: fake.memLog}
		onDisk := &realSource{t: t, dir: memoryDir(t)}
		onDisk.open()
		for name, s := range map[string]sourceUnderTest{"the log of the tests": fake, "the real log": onDisk} {
			s.append(smp{"s0", 1000, 0})
			if lane == queue.Backlog && !s.Split() {
				t.Fatalf("%s does not split", name)
			}
			e, err := s.lane(lane).Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			end := e.End
			if err := s.lane(lane).Reserve(end); err != nil {
				t.Fatal(err)
			}
			s.kill()
			if r, ok := s.lane(lane).Reach(); !ok || r.High.Commit != end.Commit {
				t.Errorf("%s, lane %v: after a kill: %+v, %v; want High %d", name, lane, r, ok, end.Commit)
			}
		}
		onDisk.close()
	}
}

// sourceCalls makes random calls as the queue may make them, and returns what they said.
func sourceCalls(t *testing.T, seed uint64, s sourceUnderTest) (said []string) {
	rng := rand.New(rand.NewPCG(seed, 1))
	tell := func(format string, a ...any) { said = append(said, fmt.Sprintf(format, a...)) }
	var read [2][]wal.Mark // of each lane, without an outcome
	for n := range 300 {
		lane := queue.Lane(rng.IntN(2))
		at := s.lane(lane)
		switch op := rng.IntN(20); {
		case op < 4:
			var all []smp
			for i := range 1 + rng.IntN(3) {
				all = append(all, smp{fmt.Sprintf("s%d", i), int64(n+1) * 1000, float64(n)})
			}
			tell("append: %s", showMark(s.append(all...)))
		case op < 9:
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if rng.IntN(8) == 0 {
				cancel() // a queue that stops
			}
			e, err := at.Next(ctx)
			cancel()
			if tell("%v: Next: %s", lane, showEntry(e, err)); err == nil {
				read[lane] = append(read[lane], e.End)
			}
		case op < 13 && len(read[lane]) > 0:
			i := rng.IntN(len(read[lane]))
			to := read[lane][i]
			if r, ok := at.Reach(); ok && r.Acked.Commit < to.Commit {
				at.Advance(to, queue.Outcome{Delivered: to.Total - r.Acked.Total})
			}
			read[lane] = slices.Delete(read[lane], 0, i+1)
			tell("%v: Advance to %s", lane, showMark(to))
		case op < 14:
			at.Rewind()
			read[lane] = nil
			tell("%v: Rewind", lane)
		case op < 16 && len(read[lane]) > 0:
			to := read[lane][rng.IntN(len(read[lane]))]
			tell("%v: Reserve %s: %v", lane, showMark(to), at.Reserve(to))
		case op == 17:
			split := s.Split()
			if split {
				s.lane(queue.Live).Rewind()
				read[queue.Live] = nil
			}
			tell("Split: %v", split)
		case op == 18 && rng.IntN(4) == 0:
			s.restart()
			read = [2][]wal.Mark{}
			tell("restart")
		}
		for l := range queue.Lane(2) {
			r, ok := s.lane(l).Reach()
			tell("%v: acked %s end %s high %s missed %d %v", l, showMark(r.Acked), showMark(r.End), showMark(r.High), r.Missed, ok)
		}
		tell("head %s, %+v", showMark(s.lane(queue.Live).Head()), s.outcome())
	}
	return said
}

func showMark(m wal.Mark) string { return fmt.Sprintf("%d(%d)", m.Commit, m.Total) }

func showEntry(e *wal.Entry, err error) string {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "none"
	case err != nil:
		return err.Error()
	}
	s := fmt.Sprintf("%s, times %d to %d, missing %d:", showMark(e.End), e.MinT, e.MaxT, e.Count()-uint64(len(e.Samples)))
	for _, x := range e.Samples {
		s += fmt.Sprintf(" %s@%d=%v", x.Series.Labels().Get("__name__"), x.T, x.V)
	}
	return s
}

// memSource is the log of the tests.
type memSource struct {
	*memLog
	backlog *memBacklog
}

func (s *memSource) lane(l queue.Lane) Source {
	if l == queue.Backlog {
		return s.backlog
	}
	return s.memLog
}

func (s *memSource) restart() {
	s.Rewind()
	s.backlog.Rewind()
}

func (s *memSource) kill() {
	s.crash()
	s.backlog.Rewind()
}

// realSource is a log on disk.
type realSource struct {
	t      *testing.T
	dir    string
	log    *wal.Log
	reader *wal.Reader
}

func (s *realSource) open() {
	var err error
	if s.log, err = wal.Open(wal.Options{Dir: s.dir}); err != nil {
		s.t.Fatal(err)
	}
	if s.reader, err = s.log.Reader("x", wal.ReaderOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *realSource) close() {
	if err := errors.Join(s.reader.Close(), s.log.Close()); err != nil {
		s.t.Error(err)
	}
}

func (s *realSource) restart() { s.close(); s.open() }

// kill opens a copy of the files as they are.
func (s *realSource) kill() {
	left := memoryDir(s.t)
	if err := os.CopyFS(left, os.DirFS(s.dir)); err != nil {
		s.t.Fatal(err)
	}
	s.close()
	s.dir = left
	s.open()
}

func (s *realSource) append(samples ...smp) wal.Mark {
	app := s.log.AppenderV2(s.t.Context())
	for _, x := range samples {
		if _, err := app.Append(0, labels.FromStrings("__name__", x.series, "job", "test"), 0, x.t, x.v, nil, nil, storage.AppendV2Options{}); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		s.t.Fatal(err)
	}
	return s.reader.Head()
}

func (s *realSource) lane(l queue.Lane) Source {
	if l == queue.Backlog {
		return s.reader.Backlog()
	}
	return s.reader
}

func (s *realSource) Split() bool            { return s.reader.Split() }
func (s *realSource) outcome() queue.Outcome { return s.reader.Ledger().Outcome }
