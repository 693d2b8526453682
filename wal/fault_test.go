package wal

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/queue"
)

// memTempDir is a directory for the lock of a log in memory. Where the system has a file system in memory it is there: thousands of
// lives would wait minutes for a disk of which they only use the directory.
func memTempDir(t testing.TB) string {
	t.Helper()
	const memory = "/dev/shm"
	if _, err := os.Stat(memory); err != nil {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "hwsagent-wal-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// memOptions are the options of a log in memory.
func memOptions(t testing.TB, segments, saves *memDir) Options {
	t.Helper()
	o := Options{Dir: memTempDir(t), wrap: func(name string, real disk.Directory) disk.Directory {
		_ = real.Close()
		if name == segmentDir {
			return segments
		}
		return saves
	}}
	o.Retain = 24 * time.Hour
	return o
}

// drain reads the first sample's value of each entry up to the head.
func drain(t testing.TB, l *Log, r *Reader) (values []float64, missing queue.Outcome) {
	t.Helper()
	sp := r.Savepoint()
	last := sp.Acked().Commit
	for last < l.head().Commit {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		e, err := r.Next(ctx)
		cancel()
		if err != nil {
			t.Fatalf("Next after commit %d, head %+v: %v", last, l.head(), err)
		}
		last = e.End.Commit
		missing.Add(e.Missing)
		if e.Count() > 0 {
			values = append(values, e.Samples[0].V)
		}
		o := e.Missing
		o.Delivered = e.Count()
		r.Advance(e.End, o)
	}
	if g := r.Ledger(); !g.Balanced() {
		t.Errorf("ledger does not add up: %+v", g)
	}
	return values, missing
}

// readOldest reads everything that a log holds, by a new target.
func readOldest(t testing.TB, l *Log) []float64 {
	t.Helper()
	r, err := l.Reader("oldest", ReaderOptions{StartAt: StartOldest})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	values, missing := drain(t, l, r)
	if missing != (queue.Outcome{}) {
		t.Errorf("samples are missing: %+v", missing)
	}
	return values
}

// A plan says which operations of the disk fail.
type faultPlan struct {
	from, to int    // numbers of the operations, counted from 1
	op       string // "" for all
	short    int    // bytes that a failing write writes all the same
	err      error
}

func (p faultPlan) String() string {
	return fmt.Sprintf("op=%s,from=%d,to=%d,short=%d,err=%v", p.op, p.from, p.to, p.short, p.err)
}

// inject makes d fail as planned. It returns how many operations there were that the
// plan speaks of, and how often one has failed.
func (p faultPlan) inject(d *memDir) (ops, fired *atomic.Int64) {
	ops, fired = new(atomic.Int64), new(atomic.Int64)
	d.fault = func(op string) (int, error) {
		if p.op != "" && p.op != op {
			return 0, nil
		}
		if n := int(ops.Add(1)); n < p.from || n > p.to {
			return 0, nil
		}
		fired.Add(1)
		return p.short, p.err
	}
	return ops, fired
}

// faultRun drives a log over a failing disk: commits, a second passing now and then.
// Of each commit it tells by its value whether it was acknowledged.
func faultRun(t *testing.T, l *Log) (acked, failed []float64) {
	for i := range 24 {
		v := float64(i)
		if err := commitFloats(l, 3, int64(i), v); err != nil {
			failed = append(failed, v)
		} else {
			acked = append(acked, v)
		}
		if i%4 == 3 {
			time.Sleep(1100 * time.Millisecond) // of the bubble: syncs, heals
		}
	}
	return acked, failed
}

// TestEveryFault fails each operation of the disk in turn, once or for a while, and
// checks what then holds: for the cursors of the process, for one that finds the
// files after a kill, and for one that finds them after a power cut.
func TestEveryFault(t *testing.T) {
	var plans []faultPlan
	step := 1
	if underRace {
		step = 8 // make test fails each of them
	}
	for _, length := range []int{1, 4, 1000} {
		for from := 1; from <= 40; from += step {
			to := from + length - 1
			plans = append(plans,
				faultPlan{from, to, "", 0, syscall.EIO},
				faultPlan{from, to, "write", 0, syscall.ENOSPC},
				faultPlan{from, to, "write", 100, syscall.ENOSPC},
				faultPlan{from, to, "write", 1 << 20, syscall.EIO}, // written whole, and failed
				faultPlan{from, to, "sync", 0, syscall.EIO},
			)
		}
	}
	for _, sync := range []time.Duration{0, SyncAlways} {
		for _, truncates := range []bool{true, false} {
			t.Run(fmt.Sprintf("sync=%v,truncates=%v", sync, truncates), func(t *testing.T) {
				t.Parallel()
				fired := 0
				for _, p := range plans {
					synctest.Test(t, func(t *testing.T) { fired += testFault(t, p, sync, truncates) })
				}
				if fired < len(plans)/2 {
					t.Errorf("only %d faults fired of %d plans", fired, len(plans))
				}
			})
		}
	}
}

func testFault(t *testing.T, p faultPlan, sync time.Duration, truncates bool) int {
	d := newMemDir()
	o := memOptions(t, d, newMemDir())
	o.Sync = sync
	ops, fired := p.inject(d)
	defer func() {
		if t.Failed() {
			t.Logf("with %v: %d operations, %d failed", p, ops.Load(), fired.Load())
		}
	}()
	if !truncates {
		f := d.fault
		d.fault = func(op string) (int, error) {
			if op == "truncate" {
				return 0, syscall.EIO
			}
			return f(op)
		}
	}
	l := openLog(t, o)
	r, err := l.Reader("live", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	acked, failed := faultRun(t, l)
	if n := d.files(); n > 12 {
		t.Errorf("%d segments", n)
	}

	// This process' cursors: what was acknowledged, no more, in order.
	got, missing := drain(t, l, r)
	if !slices.Equal(got, acked) || missing != (queue.Outcome{}) {
		t.Errorf("read %v (missing %+v), acknowledged %v, failed %v", got, missing, acked, failed)
	}
	if head := l.head(); head.Total != uint64(3*len(acked)) {
		t.Errorf("head %+v, want a total of %d", head, 3*len(acked))
	}

	// A process that comes after a kill: the same; a commit that failed may have come
	// in at the end.
	check := func(what string, d *memDir, want []float64) {
		d.freeBytes = 1 << 40
		l := openLog(t, memOptions(t, d, newMemDir()))
		got := readOldest(t, l)
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("after %s: read %v, want %v", what, got, want)
		}
		for _, v := range got[min(len(want), len(got)):] {
			if !slices.Contains(failed, v) && !slices.Contains(acked, v) {
				t.Errorf("after %s: read %v, which was never appended", what, v)
			}
		}
		if total := l.head().Total; total != uint64(3*len(got)) {
			t.Errorf("after %s: total %d for %d commits", what, total, len(got))
		}
		if err := commitFloats(l, 3, 1000, 1000); err != nil {
			t.Errorf("after %s: %v", what, err)
		}
		if again := readOldest(t, l); !slices.Equal(again, []float64{1000}) {
			t.Errorf("after %s: read %v of a new commit", what, again)
		}
		if err := l.Close(); err != nil {
			t.Errorf("after %s: close: %v", what, err)
		}
	}
	check("a kill", d.kill(), acked)
	if sync == SyncAlways {
		check("a power cut", d.crash(), acked)
	} else {
		was := fired.Load()
		if time.Sleep(1100 * time.Millisecond); fired.Load() > was { // the last fault perhaps came just now
			time.Sleep(1100 * time.Millisecond)
		}
		if int(ops.Load()) < p.from || int(ops.Load()) > p.to {
			// The disk works, so a second is enough for everything to be safe.
			check("a power cut", d.crash(), acked)
		}
	}

	_ = l.Close() // may say that the disk still fails
	check("the end", d.kill(), acked)
	return int(fired.Load())
}
