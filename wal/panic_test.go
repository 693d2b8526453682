package wal

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/queue"
)

// TestPanicAmidACommit panics in one commit after the other, with its bytes already in the segment,
// and goes on, as the agent does: whoever commits contains the panic. What was acknowledged is there,
// for the cursors of the process, after a kill and after a power cut.
func TestPanicAmidACommit(t *testing.T) {
	for _, sync := range []time.Duration{0, SyncAlways} {
		for at := 1; at <= 20; at++ {
			t.Run(fmt.Sprintf("sync=%v,write=%d", sync, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testPanic(t, sync, at) })
			})
		}
	}
}

func testPanic(t *testing.T, sync time.Duration, at int) {
	d := newMemDir()
	o := memOptions(t, d, newMemDir())
	o.Sync = sync
	l := openLog(t, o)
	r, err := l.Reader("live", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	writes, fired := 0, 0
	d.struck = func(op, _ string) error {
		if op == "write" {
			if writes++; writes == at {
				fired++
				panic("the mine went off")
			}
		}
		return nil
	}
	// commit adds a series with each commit, so that each announces one.
	commit := func(i int) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("panic: %v", v)
			}
		}()
		return commitFloats(l, 3+i, int64(i), float64(i))
	}
	var acked []float64
	for i := range 24 {
		if err := commit(i); err == nil {
			acked = append(acked, float64(i))
		}
		if i%4 == 3 {
			time.Sleep(1100 * time.Millisecond) // of the bubble: syncs
		}
	}
	if fired != 1 || len(acked) != 23 {
		t.Fatalf("%d panics; acknowledged are %v", fired, acked)
	}
	got, missing := drain(t, l, r)
	if !slices.Equal(got, acked) || missing != (queue.Outcome{}) {
		t.Errorf("read %v (missing %+v), acknowledged %v", got, missing, acked)
	}
	time.Sleep(1100 * time.Millisecond) // the disk works, so everything is safe
	for what, after := range map[string]*memDir{"a kill": d.kill(), "a power cut": d.crash()} {
		after.freeBytes = 1 << 40
		l := openLog(t, memOptions(t, after, newMemDir()))
		got := readOldest(t, l)
		for _, v := range acked {
			if !slices.Contains(got, v) {
				t.Errorf("after %s: read %v, acknowledged %v", what, got, acked)
				break
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
