package wal

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hwsagent/wal/queue"
)

// setHead makes a mark the head: what the files hold beyond it is not given to the log yet.
func (l *fakeLog) setHead(m Mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark = m
	close(l.changed)
	l.changed = make(chan struct{})
}

// splitPlan opens a target of a log of three segments with five commits of four samples
// each, delivers two, and leaves up to the eighth to the backlog.
func splitPlan(t *testing.T, ts *targets) (*plan, *fakeLog, *Reader) {
	t.Helper()
	p := newPlan(3, 5, 4)
	l := p.log()
	l.setHead(p.commits[7].mark)
	r := openTestReader(t, ts, l, "a", ReaderOptions{StartAt: StartOldest})
	deliver(t, r, 2)
	if !r.Split() {
		t.Fatal("no split")
	}
	l.setHead(p.commits[14].mark)
	return p, l, r
}

// deliverLane delivers up to n entries of a lane and returns the numbers of their commits.
func deliverLane(t *testing.T, r *Reader, l *Lane, n int) (commits []uint64, missing queue.Outcome) {
	t.Helper()
	for range n {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		e, err := l.Next(ctx)
		cancel()
		if errors.Is(err, ErrCaughtUp) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		o := e.Missing
		missing.Add(o)
		o.Delivered += e.Count()
		if err := l.Reserve(e.End); err != nil {
			t.Fatal(err)
		}
		l.Advance(e.End, o)
		commits = append(commits, e.End.Commit)
		checkLedger(t, r)
	}
	return commits, missing
}

// The newest is read first, the backlog beside it, each in order; when the backlog has its
// end, the ranges are one. What is left after a crash is what had no outcome.
func TestSplit(t *testing.T) {
	for _, liveFirst := range []bool{true, false} {
		p, _, r := splitPlan(t, memTargets(t, newMemDir(), targetsOptions{}))
		last := p.commits[14].mark
		if got := r.Ledger(); got.Pending != 13*4 || got.Delivered != 8 {
			t.Errorf("ledger %+v", got)
		}
		lanes := []*Lane{r.Lane, r.Backlog()}
		want := [][]uint64{{9, 10, 11, 12, 13, 14, 15}, {3, 4, 5, 6, 7, 8}}
		if !liveFirst {
			slices.Reverse(lanes)
			slices.Reverse(want)
		}
		for i, l := range lanes {
			got, missing := deliverLane(t, r, l, len(want[i]))
			if !slices.Equal(got, want[i]) || missing != (queue.Outcome{}) {
				t.Errorf("lane %d: %v, missing %+v", i, got, missing)
			}
		}
		if sp := r.Savepoint(); len(sp.Done) != 1 || sp.Acked() != last || sp.Last() != last {
			t.Errorf("savepoint %+v", sp)
		}
		if _, err := r.Backlog().Next(t.Context()); !errors.Is(err, ErrCaughtUp) {
			t.Errorf("the backlog has more: %v", err)
		}
		if _, ok := r.Backlog().Reach(); ok {
			t.Error("there is a backlog")
		}
		if g := r.Ledger(); g.Pending != 0 || g.Delivered != 60 || r.Pending() != 0 {
			t.Errorf("ledger %+v, %d bytes", g, r.Pending())
		}
	}
}

// TestBacklogLetsGo: a backlog that is read holds no series and no file, for it may be long until there is another; the next
// one is read all the same.
func TestBacklogLetsGo(t *testing.T) {
	p, l, r := splitPlan(t, memTargets(t, newMemDir(), targetsOptions{}))
	lane := r.Backlog()
	holds := func() (n int) {
		for i := range lane.cursor.decode.series.refs {
			n += lane.cursor.decode.series.refs[i].Len()
		}
		return n
	}
	deliverLane(t, r, lane, 6)
	if holds() == 0 || lane.cursor.file == nil {
		t.Fatal("the backlog holds nothing while it is read")
	}
	deliverLane(t, r, lane, 1)
	if n := holds(); n != 0 || lane.cursor.file != nil {
		t.Errorf("a backlog that is read holds %d series, and a file: %v", n, lane.cursor.file != nil)
	}
	if !r.Split() {
		t.Fatal("no split")
	}
	lane.Rewind()
	if back, missing := deliverLane(t, r, lane, 99); !slices.Equal(back, []uint64{9, 10, 11, 12, 13, 14, 15}) || missing.Sum() > 0 {
		t.Errorf("the next backlog has %v, and misses %+v", back, missing)
	}
	if g := r.Ledger(); g.Pending != 0 || g.Delivered != uint64(4*len(p.commits)) {
		t.Errorf("ledger %+v", g)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := l.allSeries().held(); n != 0 {
		t.Errorf("%d series are left", n)
	}
}

// After a kill both lanes go on where they were, and each knows what may have been sent.
func TestSplitSurvivesAKill(t *testing.T) {
	dir := newMemDir()
	ts := memTargets(t, dir, targetsOptions{})
	p, l, r := splitPlan(t, ts)
	deliverLane(t, r, r.Lane, 2)
	deliverLane(t, r, r.Backlog(), 1)
	for _, lane := range []*Lane{r.Lane, r.Backlog()} {
		reach, _ := lane.Reach()
		if err := lane.Reserve(p.commits[reach.Acked.Commit+1].mark); err != nil { // the second after it
			t.Fatal(err)
		}
	}
	ts = memTargets(t, dir.kill(), targetsOptions{})
	r = openTestReader(t, ts, l, "a", ReaderOptions{})
	mark := func(n int) Mark { return p.commits[n-1].mark }
	if got, _ := r.Reach(); got != (queue.Reach{Acked: mark(10), High: mark(12)}) {
		t.Errorf("live: %+v", got)
	}
	if got, ok := r.Backlog().Reach(); !ok || got != (queue.Reach{Acked: mark(3), End: mark(8), High: mark(5), Missed: mark(8).Total - mark(3).Total}) {
		t.Errorf("backlog: %+v", got)
	}
	if at, _ := ts.lowest(); at != 0 {
		t.Errorf("segments before %d may go", at)
	}
	back, _ := deliverLane(t, r, r.Backlog(), 99)
	fresh, _ := deliverLane(t, r, r.Lane, 5)
	if !slices.Equal(back, []uint64{4, 5, 6, 7, 8}) || !slices.Equal(fresh, []uint64{11, 12, 13, 14, 15}) {
		t.Errorf("backlog %v, live %v", back, fresh)
	}
	if g := r.Ledger(); g.Pending != 0 || g.Delivered != 60 {
		t.Errorf("ledger %+v", g)
	}
}

// A reservation is one write, without fsync, which the next process finds after a kill; nothing is written for what is reserved
// already.
func TestReservationIsOneWrite(t *testing.T) {
	dir := newMemDir()
	writes, syncs := 0, 0
	dir.fault = func(op string) (int, error) {
		switch op {
		case "write":
			writes++
		case "sync":
			syncs++
		}
		return 0, nil
	}
	ts := memTargets(t, dir, targetsOptions{})
	p, l, r := splitPlan(t, ts)
	back := func(r *Reader) *Lane { return r.Backlog() }
	for _, lane := range []func(*Reader) *Lane{func(r *Reader) *Lane { return r.Lane }, back} {
		reach, _ := lane(r).Reach()
		high := p.commits[reach.Acked.Commit+1].mark
		for _, want := range []int{1, 0} {
			before, synced := writes, syncs
			if err := lane(r).Reserve(high); err != nil {
				t.Fatal(err)
			}
			if got := writes - before; got != want || syncs != synced {
				t.Errorf("%d writes and %d fsyncs, want %d writes", got, syncs-synced, want)
			}
			ts := memTargets(t, dir.kill(), targetsOptions{})
			if got, _ := lane(openTestReader(t, ts, l, "a", ReaderOptions{})).Reach(); got.High != high {
				t.Errorf("a start knows of commit %d, want %d", got.High.Commit, high.Commit)
			}
		}
	}
}

// There is no split where nothing waits, where what may have been sent goes further, and
// where there are too many ranges; outages one after the other leave one gap each.
func TestManySplits(t *testing.T) {
	p := newPlan(1, 2*queue.MaxRanges, 2)
	l := p.log()
	l.setHead(p.commits[0].mark)
	dir := newMemDir()
	ts := memTargets(t, dir, targetsOptions{})
	r := openTestReader(t, ts, l, "a", ReaderOptions{StartAt: StartOldest})
	deliver(t, r, 1)
	if r.Split() {
		t.Error("a split where nothing waits")
	}
	splits := 0
	for n := 2; n+1 < len(p.commits); n += 2 {
		l.setHead(p.commits[n-1].mark)
		if r.Split() {
			splits++
		}
		l.setHead(p.commits[n].mark)
		deliverLane(t, r, r.Lane, 1)
	}
	if splits != queue.MaxRanges-1 || len(r.Savepoint().Done) != queue.MaxRanges {
		t.Errorf("%d splits: %d ranges", splits, len(r.Savepoint().Done))
	}
	if err := ts.save(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(memTargets(t, dir.crash(), targetsOptions{}).byName["a"].savepoint(), r.Savepoint()); diff != "" {
		t.Error(diff)
	}
	for range splits {
		got, _ := deliverLane(t, r, r.Backlog(), 99)
		if len(got) != 1 {
			t.Fatalf("a gap of %v", got)
		}
		r.Backlog().Rewind()
	}
	if sp := r.Savepoint(); len(sp.Done) != 1 {
		t.Errorf("%d ranges are left", len(sp.Done))
	}
	checkLedger(t, r)
}

// The commit at which the backlog ends may be lost: then what follows shows that, and its
// samples count as damage, once.
func TestBacklogEndsInDamage(t *testing.T) {
	for _, lost := range []int{6, 7, 8} { // of the backlog 3 to 8
		ts := memTargets(t, newMemDir(), targetsOptions{})
		p, l, r := splitPlan(t, ts)
		end := p.commits[lost-1].mark
		l.mu.Lock()
		l.files[end.Segment][end.Offset-9] ^= 0xff
		l.mu.Unlock()
		got, missing := deliverLane(t, r, r.Backlog(), 99)
		if missing.Dropped[queue.Damage] < 4 || got[len(got)-1] != 8 {
			t.Errorf("lost %d: read %v, missing %+v", lost, got, missing)
		}
		fresh, more := deliverLane(t, r, r.Lane, 7)
		if more.Dropped[queue.Damage] > 8 || fresh[len(fresh)-1] != 15 {
			t.Errorf("lost %d: live read %v, missing %+v", lost, fresh, more)
		}
		if g := r.Ledger(); g.Pending != 0 || g.Delivered+g.Dropped[queue.Damage] != 60 {
			t.Errorf("lost %d: %+v", lost, g)
		}
	}
}

// What the log lets go is the oldest, whichever lane has it to send; what was on its way
// counts by its outcome.
func TestDropWithBacklog(t *testing.T) {
	for _, tc := range []struct {
		end    int // commit up to which all goes
		ranges int
		budget uint64 // samples of it that count as dropped in the end
	}{
		{5, 2, 8}, // of the backlog 3 to 8, of which 3 was delivered and 4 is on its way
		{8, 1, 20},
		{10, 1, 20}, // 9 and 10 were delivered
		{12, 1, 28}, // 11 is on its way
	} {
		ts := memTargets(t, newMemDir(), targetsOptions{})
		p, l, r := splitPlan(t, ts)
		deliverLane(t, r, r.Lane, 2)
		deliverLane(t, r, r.Backlog(), 1)
		var ends []Mark
		for _, lane := range []*Lane{r.Lane, r.Backlog()} {
			e, err := lane.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, e.End)
		}
		if err := ts.dropThrough(p.commits[tc.end-1].mark); err != nil {
			t.Fatal(err)
		}
		checkLedger(t, r)
		r.Advance(ends[0], queue.Outcome{Delivered: 4})
		r.Backlog().Advance(ends[1], queue.Outcome{Delivered: 4})
		if g := r.Ledger(); !g.Balanced() || g.Dropped[queue.Budget] != tc.budget {
			t.Errorf("up to %d: %+v", tc.end, g)
		}
		if n := len(r.Savepoint().Done); n != tc.ranges {
			t.Errorf("up to %d: %d ranges", tc.end, n)
		}
		deliverLane(t, r, r.Backlog(), 99)
		for r.Ledger().Pending > 0 {
			deliverLane(t, r, r.Lane, 1)
		}
		if sp := r.Savepoint(); sp.Acked() != l.head() {
			t.Errorf("up to %d: %+v", tc.end, sp)
		}
	}
}

// A backlog's bytes are those of the gap, and of what lives after it.
func TestPendingBytesWithBacklog(t *testing.T) {
	ts := memTargets(t, newMemDir(), targetsOptions{})
	p, l, r := splitPlan(t, ts)
	size := func(from, to int) (n int64) { // of the commits after from up to to
		a, b := p.commits[from-1].mark, p.commits[to-1].mark
		for _, s := range l.segments() {
			if s.Number >= a.Segment && s.Number <= b.Segment {
				n += s.End
			}
			if s.Number == a.Segment {
				n -= a.Offset
			}
			if s.Number == b.Segment {
				n -= s.End - b.Offset
			}
		}
		return n
	}
	deliverLane(t, r, r.Lane, 4)
	if got, want := r.Pending(), size(2, 8)+size(12, 15); got != want {
		t.Errorf("%d bytes wait, want %d", got, want)
	}
	deliverLane(t, r, r.Backlog(), 99)
	if got, want := r.Pending(), size(12, 15); got != want {
		t.Errorf("%d bytes wait, want %d", got, want)
	}
}

// max_backlog lets the backlog's oldest go, and nothing that was delivered meanwhile counts.
func TestMaxBacklogWithBacklog(t *testing.T) {
	ts := memTargets(t, newMemDir(), targetsOptions{})
	p, l, r := splitPlan(t, ts)
	deliverLane(t, r, r.Lane, 7)
	r.target.maxBacklog = r.Pending() - 1
	ts.enforceBacklog(l)
	sp := r.Savepoint()
	if g := r.Ledger(); sp.Acked().Commit != p.commits[4].mark.Commit || g.Dropped[queue.Budget] != 3*4 || g.Pending != 3*4 {
		t.Errorf("at %v: %+v", sp.Acked(), g)
	}
	checkLedger(t, r)
}

// A queue that another target takes over keeps its backlog.
func TestAdoptWithBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, saves := newMemDir(), newMemDir()
		l := openLog(t, memOptions(t, d, saves))
		r, err := l.Reader("old", ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for v := range 4 {
			if err := commitFloats(l, 3, int64(v), float64(v)); err != nil {
				t.Fatal(err)
			}
			if v == 2 && !r.Split() {
				t.Fatal("no split")
			}
		}
		deliverLane(t, r, r.Lane, 1)
		want := r.Savepoint()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := l.Adopt("old", "new"); err != nil {
			t.Fatal(err)
		}
		if r, err = l.Reader("new", ReaderOptions{}); err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if diff := cmp.Diff(want, r.Savepoint()); diff != "" {
			t.Error(diff)
		}
		s, err := l.Before(t.Context(), "new", time.UnixMilli(2), func(_, _ int64) {})
		if err != nil || s.Samples != 6 {
			t.Errorf("before: %+v, %v", s, err)
		}
		if n, err := l.Skip("new", s.End); err != nil || n != 6 {
			t.Errorf("skipped %d, %v", n, err)
		}
		if got, _ := deliverLane(t, r, r.Backlog(), 99); len(got) != 1 {
			t.Errorf("the backlog had %v", got)
		}
		if g := r.Ledger(); g.Delivered != 6 || g.Dropped[queue.Skipped] != 6 || g.Pending != 0 {
			t.Errorf("%+v", g)
		}
	})
}
