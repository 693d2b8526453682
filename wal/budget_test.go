package wal

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal/queue"
)

// ackAll gives everything up to the head its outcome, except what was dropped.
func ackAll(t *testing.T, l *Log, r *Reader) (delivered uint64, missing queue.Outcome) {
	t.Helper()
	for sp := r.Savepoint(); sp.Acked().Commit < l.head().Commit; sp = r.Savepoint() {
		e := nextEntry(t, r)
		o := e.Missing
		o.Delivered = e.Count()
		missing.Add(e.Missing)
		delivered += e.Count()
		r.Advance(e.End, o)
	}
	return delivered, missing
}

// commitNoise commits one sample of each of n series; they do not compress.
func commitNoise(l *Log, n int, t int64) error {
	app := l.AppenderV2(context.Background())
	rnd := rand.New(rand.NewPCG(uint64(t), 0))
	for i := range n {
		if _, err := app.Append(0, sampleOf(i), 0, t, rnd.Float64(), nil, nil, storage.AppendV2Options{}); err != nil {
			return err
		}
	}
	return app.Commit()
}

func TestDropOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		o := memOptions(t, segments, saves)
		o.MaxBytes, o.Retain = 400_000, 0
		l := openLog(t, o)
		dead := openReader(t, l, "dead", ReaderOptions{})
		live := openReader(t, l, "live", ReaderOptions{})
		var delivered uint64
		for i := range 400 {
			if err := commitNoise(l, 500, int64(i)); err != nil {
				t.Fatal(err)
			}
			n, missing := ackAll(t, l, live)
			if delivered += n; missing != (queue.Outcome{}) {
				t.Errorf("the live target misses %+v", missing)
			}
			if checkBudget(t, l, o.MaxBytes, false) {
				t.Fatal("two segments are larger than the budget")
			}
			time.Sleep(50 * time.Millisecond)
		}
		total := uint64(400 * 500)
		if delivered != total {
			t.Errorf("live target got %d of %d", delivered, total)
		}
		before := dead.Ledger()
		if !before.Balanced() || before.Dropped[queue.Budget] == 0 || before.Appended != total {
			t.Errorf("ledger of the dead target: %+v", before)
		}
		// The savepoints knew of the drop before the segments went.
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = openLog(t, memOptions(t, segments.crash(), saves.crash()))
		dead = openReader(t, l, "dead", ReaderOptions{})
		got, missing := ackAll(t, l, dead)
		after := dead.Ledger()
		if !after.Balanced() || after.Dropped[queue.Budget] != before.Dropped[queue.Budget] || missing != (queue.Outcome{}) {
			t.Errorf("ledger after a power cut: %+v, missing %+v; before: %+v", after, missing, before)
		}
		if got+after.Dropped[queue.Budget] != total {
			t.Errorf("got %d and dropped %d of %d", got, after.Dropped[queue.Budget], total)
		}
		_ = dead.Close()
		_ = l.Close()
	})
}

func TestReject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := memOptions(t, newMemDir(), newMemDir())
		o.MaxBytes, o.OnFull, o.Retain = 200_000, Reject, 0
		l := openLog(t, o)
		r := openReader(t, l, "a", ReaderOptions{})
		accepted, refused := uint64(0), uint64(0)
		for i := range 200 {
			switch err := commitNoise(l, 500, int64(i)); {
			case err == nil:
				accepted += 500
			case errors.Is(err, ErrFull):
				refused += 500
			default:
				t.Fatal(err)
			}
		}
		if accepted == 0 || refused == 0 {
			t.Fatalf("%d accepted, %d refused", accepted, refused)
		}
		st := l.Status()
		if !errors.Is(st.Err, ErrFull) || st.Refused != refused || st.Appended != accepted || st.Bytes > o.MaxBytes {
			t.Errorf("status %+v", st)
		}
		if n, _ := ackAll(t, l, r); n != accepted {
			t.Errorf("%d delivered of %d", n, accepted)
		}
		time.Sleep(1100 * time.Millisecond) // delivered segments go
		if err := commitFloats(l, 500, 1000, 1000); err != nil {
			t.Errorf("after delivery: %v", err)
		}
		if st := l.Status(); st.Err != nil {
			t.Errorf("status %+v", st)
		}
		if g := r.Ledger(); !g.Balanced() || g.GivenUp() != 0 {
			t.Errorf("ledger %+v", g)
		}
		_ = r.Close()
		_ = l.Close()
	})
}

func TestMinFreeBytes(t *testing.T) {
	for _, policy := range []OnFull{DropOldest, Reject} {
		synctest.Test(t, func(t *testing.T) {
			d := newMemDir()
			o := memOptions(t, d, newMemDir())
			o.MinFreeBytes, o.OnFull, o.SegmentBytes = 1000, policy, 20_000
			l := openLog(t, o)
			r := openReader(t, l, "a", ReaderOptions{})
			for i := range 100 {
				if err := commitNoise(l, 100, int64(i)); err != nil {
					t.Fatal(err)
				}
			}
			had := l.Status().Segments
			d.mu.Lock()
			d.freeBytes = 999
			d.mu.Unlock()
			time.Sleep(1100 * time.Millisecond)
			err := commitFloats(l, 100, 1000, 1000)
			switch has := l.Status().Segments; policy {
			case DropOldest:
				if err != nil || has < had-2 || had <= 3 || r.Ledger().Pending < 100*80 {
					t.Errorf("%d segments of %d left, commit: %v, ledger %+v", has, had, err, r.Ledger())
				}
			case Reject:
				if !errors.Is(err, ErrFull) || has != had || r.Ledger().GivenUp() != 0 {
					t.Errorf("%d segments of %d left, commit: %v, ledger %+v", has, had, err, r.Ledger())
				}
			}
			d.mu.Lock()
			d.freeBytes = 1000
			d.mu.Unlock()
			time.Sleep(1100 * time.Millisecond)
			if err := commitFloats(l, 100, 1001, 1001); err != nil {
				t.Error(err)
			}
			if g := r.Ledger(); !g.Balanced() {
				t.Errorf("ledger %+v", g)
			}
			_ = r.Close()
			_ = l.Close()
		})
	}
}

func TestDeliveredSegmentsGo(t *testing.T) {
	for _, tc := range []struct {
		name     string
		settings Settings
		wait     time.Duration
		few      bool // whether only the newest segments are left
	}{
		{"at once", Settings{}, 1100 * time.Millisecond, true},
		{"retained", Settings{Retain: time.Hour}, time.Minute, false},
		{"retained long enough", Settings{Retain: time.Hour}, time.Hour + 2*time.Second, true},
		{"retained, budget lowered", Settings{Retain: time.Hour, MaxBytes: 30_000}, 1100 * time.Millisecond, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := memOptions(t, newMemDir(), newMemDir())
				o.SegmentBytes = 20_000
				l := openLog(t, o)
				r := openReader(t, l, "a", ReaderOptions{})
				for i := range 100 {
					if err := commitNoise(l, 100, int64(i)); err != nil {
						t.Fatal(err)
					}
				}
				ackAll(t, l, r)
				had := l.Status().Segments
				l.Reconfigure(tc.settings)
				time.Sleep(tc.wait)
				has := l.Status().Segments
				if few := has <= 2; few != tc.few || had <= 2 {
					t.Errorf("%d segments of %d left", has, had)
				}
				if g := r.Ledger(); !g.Balanced() || g.GivenUp() != 0 {
					t.Errorf("ledger %+v", g)
				}
				_ = r.Close()
				_ = l.Close()
			})
		})
	}
}

// What is retained goes before anything that waits, and the target loses nothing.
func TestRetainedGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := memOptions(t, newMemDir(), newMemDir())
		o.SegmentBytes, o.Retain = 20_000, time.Hour
		l := openLog(t, o)
		r := openReader(t, l, "a", ReaderOptions{})
		fill := func(from, to int) {
			for i := from; i < to; i++ {
				if err := commitNoise(l, 100, int64(i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		fill(0, 50)
		ackAll(t, l, r)
		fill(50, 100) // they wait
		before := l.Status()
		waits := r.Pending()
		l.Reconfigure(Settings{Retain: time.Hour, MaxBytes: waits + 60_000})
		time.Sleep(1100 * time.Millisecond)
		fill(100, 110)
		after := l.Status()
		if after.First <= before.First || after.Bytes > waits+60_000 {
			t.Errorf("no segment has gone: %+v, then %+v", before, after)
		}
		if g := r.Ledger(); !g.Balanced() || g.GivenUp() != 0 || g.Pending != 6000 {
			t.Errorf("ledger %+v", g)
		}
		_ = r.Close()
		_ = l.Close()
	})
}

// TestLittleFreeSpaceReplaces: while less than MinFreeBytes is free, what comes in replaces the oldest segments, and
// the log gets no longer. The backlog stays, whatever others do with what becomes free.
func TestLittleFreeSpaceReplaces(t *testing.T) {
	for _, hog := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d := newMemDir()
			o := memOptions(t, d, newMemDir())
			o.MinFreeBytes, o.SegmentBytes = 50_000, 20_000
			l := openLog(t, o)
			r := openReader(t, l, "a", ReaderOptions{})
			round := 0
			fill := func(n int) {
				for range n {
					if err := commitNoise(l, 100, int64(round)); err != nil {
						t.Fatal(err)
					}
					round++
					time.Sleep(100 * time.Millisecond)
				}
			}
			fill(400)
			before := l.Status()
			free := func(n int64) {
				d.mu.Lock()
				d.freeBytes = n
				d.mu.Unlock()
			}
			free(o.MinFreeBytes - 1)
			time.Sleep(1100 * time.Millisecond)
			if st := l.Status(); st.Segments != before.Segments || r.Ledger().GivenUp() != 0 {
				t.Fatalf("the disk of others cost a backlog: %+v, ledger %+v", st, r.Ledger())
			}
			for range 40 {
				fill(10)
				if !hog { // what the log lets go is free, what it takes is not
					free(o.MinFreeBytes - 1 + before.Bytes - l.Status().Bytes)
				}
				if st := l.Status(); st.Bytes > before.Bytes+2*o.SegmentBytes || st.Bytes < before.Bytes-4*o.SegmentBytes {
					t.Fatalf("%d bytes after round %d, %d when space became short", st.Bytes, round, before.Bytes)
				}
			}
			g := r.Ledger()
			if !g.Balanced() || g.Dropped[queue.Budget] == 0 || g.Pending < 30_000 {
				t.Errorf("ledger %+v", g)
			}
			free(1 << 40)
			fill(100)
			if after := r.Ledger(); l.Status().Bytes < before.Bytes+3*o.SegmentBytes || after.GivenUp() > g.GivenUp()+600 {
				t.Errorf("with room again: %+v, ledger %+v", l.Status(), after)
			}
			if n, missing := ackAll(t, l, r); n != r.Ledger().Delivered || missing != (queue.Outcome{}) || !r.Ledger().Balanced() {
				t.Errorf("%d delivered, missing %+v, ledger %+v", n, missing, r.Ledger())
			}
			_ = r.Close()
			_ = l.Close()
		})
	}
}

// TestLittleFreeSpaceWhileDelivered: a log whose targets keep up loses nothing while space is short.
func TestLittleFreeSpaceWhileDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newMemDir()
		o := memOptions(t, d, newMemDir())
		o.MinFreeBytes, o.SegmentBytes = 1_000_000, 20_000
		d.freeBytes = o.MinFreeBytes - 1
		l := openLog(t, o)
		r := openReader(t, l, "a", ReaderOptions{})
		for i := range 1000 {
			if err := commitNoise(l, 100, int64(i)); err != nil {
				t.Fatal(err)
			}
			ackAll(t, l, r)
			time.Sleep(100 * time.Millisecond)
		}
		if g := r.Ledger(); !g.Balanced() || g.GivenUp() != 0 || g.Delivered != 100_000 {
			t.Errorf("ledger %+v", g)
		}
		if st := l.Status(); st.Bytes > o.MinFreeBytes/4 {
			t.Errorf("%d bytes", st.Bytes)
		}
		_ = r.Close()
		_ = l.Close()
	})
}

// After the log has let go what a target had read, the age of what waits is known although it has
// not been read.
func TestOldestPendingAfterADrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := memOptions(t, newMemDir(), newMemDir())
		o.MaxBytes, o.SegmentBytes = 100_000, 10_000
		l := openLog(t, o)
		r := openReader(t, l, "a", ReaderOptions{})
		first := time.Now()
		for i := range 10 {
			if err := commitNoise(l, 100, time.Now().UnixMilli()+int64(i)); err != nil {
				t.Fatal(err)
			}
			nextEntry(t, r)
		}
		if got := r.OldestPending(); got.Sub(first).Abs() > time.Second {
			t.Errorf("oldest pending %v, want %v", got, first)
		}
		for i := range 400 {
			time.Sleep(time.Second)
			if err := commitNoise(l, 100, time.Now().UnixMilli()+int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		g, got := r.Ledger(), r.OldestPending()
		want := time.Now().Add(-time.Duration(g.Pending/100) * time.Second)
		if g.Dropped[queue.Budget] < 1000 || got.Sub(want).Abs() > 2*time.Second {
			t.Errorf("oldest pending %v, want %v; ledger %+v", got, want, g)
		}
		_ = r.Close()
		_ = l.Close()
	})
}

// A commit for which a new segment would begin is refused like any other when the log is
// full of what is not delivered, and accepted when that is.
func TestRefusedWhereASegmentBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := memOptions(t, newMemDir(), newMemDir())
		o.MaxBytes, o.OnFull, o.Retain = 100_000, Reject, 0
		l := openLog(t, o)
		r := openReader(t, l, "a", ReaderOptions{})
		accepted := 0
		for ; accepted < 100; accepted++ {
			// Longer than an eighth of the budget, so each has a segment of its own.
			if err := commitFloats(l, 2000, int64(accepted), 1); errors.Is(err, ErrFull) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if segments, bytes := l.index.usage(); accepted < 2 || accepted == 100 || segments != accepted || bytes > o.MaxBytes {
			t.Fatalf("%d commits in %d segments, %d bytes", accepted, segments, bytes)
		}
		if got, missing := drain(t, l, r); len(got) != accepted || missing != (queue.Outcome{}) {
			t.Errorf("read %d of %d commits, missing %+v", len(got), accepted, missing)
		}
		time.Sleep(2 * time.Second) // savepoints, and what is delivered goes
		if err := commitFloats(l, 2000, 1000, 1); err != nil {
			t.Error(err)
		}
	})
}
