package wal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// used is the cursor that reads for the lane.
func (l *Lane) used() *cursor {
	if l.cursor != nil {
		return l.cursor
	}
	return l.reading.cursor
}

// size is how many references the table has.
func (t *seriesTable) size() (n int) {
	for i := range t.refs {
		n += t.refs[i].Len()
	}
	return n
}

// twin is a lane beside a cursor that reads the same alone.
type twin struct {
	r        *Reader
	alone    *cursor
	found    *findings // of alone
	held     *Entry    // the last entry of the lane
	straight bool      // the lane has never begun again or been cut off: it has read no segment twice
}

// readTwins are lanes of a damaged log whose head moves, and what has happened to them.
type readTwins struct {
	*testing.T
	log   *fakeLog
	ts    *targets
	rnd   *rand.Rand
	twins []*twin

	shared, cuts, failures, rewinds int
}

// TestReadingIsWhatEachCursorReads: lanes that join the reading at the head, lag, are cut off, begin again, and meet errors
// of the disk and damage get the entries that cursors of their own would read, and count the same damage. The series of an
// entry are not gone while a lane that follows has it.
func TestReadingIsWhatEachCursorReads(t *testing.T) {
	seed := testSeed(t)
	var sum readTwins
	for i := range uint64(40) {
		r := readTwins{T: t, rnd: rand.New(rand.NewPCG(seed, i))}
		r.run()
		sum.shared, sum.cuts, sum.failures, sum.rewinds = sum.shared+r.shared, sum.cuts+r.cuts, sum.failures+r.failures, sum.rewinds+r.rewinds
	}
	if sum.shared < 100 || sum.cuts < 10 || sum.failures < 10 || sum.rewinds < 10 {
		t.Errorf("%d entries were shared, %d lanes cut off, %d reads failed, %d lanes began again", sum.shared, sum.cuts, sum.failures, sum.rewinds)
	}
}

func (r *readTwins) run() {
	p := damagePlan(r.rnd.Uint64(), 0)
	r.log = newFakeLog(p.segments...)
	damaged := r.rnd.IntN(2) == 0
	if damaged {
		r.damage()
	}
	r.log.mark = p.commits[0].mark
	r.ts = memTargets(r.T, newMemDir(), targetsOptions{})
	r.ts.reading.ahead = []int{0, 1, 3000}[r.rnd.IntN(3)]
	for i := range 4 {
		tw := &twin{}
		r.open(tw, strconv.Itoa(i))
		r.twins = append(r.twins, tw)
	}
	for at := 0; at < len(p.commits)-1 || r.rnd.IntN(200) > 0; {
		if r.rnd.IntN(30) == 0 && at < len(p.commits)-1 {
			// How much a reader skips after damage depends on how much of the segment it sees: they all see all of it.
			for at++; damaged && at < len(p.commits)-1 && p.commits[at].segment == p.commits[at+1].segment; at++ {
			}
			r.log.mark = p.commits[at].mark
		}
		i := min(r.rnd.IntN(4), r.rnd.IntN(4)) // some are slower
		r.act(r.twins[i], strconv.Itoa(i))
	}
	for i, tw := range r.twins {
		for r.step(tw) {
		}
		got, want := [2]int64{tw.r.found.damaged.Load(), tw.r.found.holes.Load()}, [2]int64{tw.found.damaged.Load(), tw.found.holes.Load()}
		if tw.straight && got != want {
			r.Errorf("lane %d counts %d, a cursor alone %d, after %d failures", i, got, want, r.failures)
		}
		tw.alone.release()
		if err := tw.r.Close(); err != nil {
			r.Error(err)
		}
	}
	if n := r.log.series.byHash.Len(); n != 0 || r.ts.reading.cursor != nil {
		r.Errorf("%d series are left", n)
	}
}

// damage damages some bytes of all segments but the last, and removes a segment now and then.
func (r *readTwins) damage() {
	for n := range len(r.log.files) - 1 { // damage counts with the entry after it
		b := bytes.Clone(r.log.files[n])
		for range r.rnd.IntN(3) {
			b[r.rnd.IntN(len(b))] ^= byte(1 + r.rnd.IntN(255))
		}
		r.log.files[n] = b
	}
	if r.rnd.IntN(4) == 0 {
		delete(r.log.files, 1)
	}
}

func (r *readTwins) open(tw *twin, name string) {
	var err error
	if tw.r, err = r.ts.open(r.log, name, ReaderOptions{StartAt: StartOldest}); err != nil {
		r.Fatal(err)
	}
	tw.found, tw.straight, tw.held = newFindings(tw.r.log), true, nil
	tw.alone = newCursor(r.log, tw.r.log, tw.found)
	r.again(tw)
}

// again lets the lane and the cursor alone begin again, while they see the same log.
func (r *readTwins) again(tw *twin) {
	reach, _ := tw.r.Reach()
	tw.alone.place(reach.Acked, Mark{})
	tw.r.place(reach.Acked, Mark{})
	tw.r.placed = true
}

// act does one thing with a lane.
func (r *readTwins) act(tw *twin, name string) {
	switch r.rnd.IntN(60) {
	case 0:
		tw.r.Rewind()
		r.again(tw)
		tw.straight, tw.held = false, nil
		r.rewinds++
	case 1:
		if err := tw.r.Close(); err != nil {
			r.Fatal(err)
		}
		tw.alone.release()
		r.open(tw, name)
		tw.straight, tw.held = false, nil
	case 2:
		r.log.readErr = errDisk
		_, e, err := tw.r.step()
		r.log.readErr = nil
		if err != nil {
			r.failures++
			tw.straight, tw.held = false, nil
			return
		}
		r.compare(tw, e)
	default:
		r.step(tw)
	}
}

// step reads one entry, and reports whether there was one.
func (r *readTwins) step(tw *twin) bool {
	followed := tw.r.at
	_, e, err := tw.r.step()
	if err != nil {
		r.Fatal(err)
	}
	if followed != nil && tw.r.at == nil {
		r.cuts++
		tw.straight = false
	}
	r.compare(tw, e)
	return e != nil
}

// compare compares an entry of the lane, or nil, with that of the cursor alone.
func (r *readTwins) compare(tw *twin, e *Entry) {
	r.Helper()
	if tw.r.at != nil && tw.r.at.users > 1 {
		r.shared++
	}
	want, err := tw.alone.next(r.log.mark)
	if err != nil {
		r.Fatal(err)
	}
	if (e == nil) != (want == nil) {
		r.Fatalf("the lane reads %v, a cursor alone %v", e, want)
	}
	if e != nil {
		show := func(e *Entry) string {
			return fmt.Sprintf("%+v, times %d to %d, misses %+v: %v", e.End, e.MinT, e.MaxT, e.Missing, testSamples(e))
		}
		if got, want := show(e), show(want); got != want {
			r.Fatalf("the lane reads\n%s\na cursor alone reads\n%s", got, want)
		}
		if r.rnd.IntN(3) > 0 {
			o := e.Missing
			reach, _ := tw.r.Reach()
			o.Delivered = e.End.Total - reach.Acked.Total - o.Lost()
			tw.r.Advance(e.End, o)
		}
	}
	tw.held = e
	for _, tw := range r.twins {
		if tw.held == nil || tw.r.at == nil || tw.r.at.cut {
			continue
		}
		for _, s := range tw.held.Samples {
			if s.Series.Gone() {
				r.Fatalf("%s is gone while a lane has it in commit %d", s.Series.Labels, tw.held.End.Commit)
			}
		}
	}
}

// commitNames commits one sample of each of n series, from the i-th on, at a time after 0.
func commitNames(t *testing.T, l *Log, i, n int, at int64) {
	t.Helper()
	app := l.AppenderV2(t.Context())
	for n += i; i < n; i++ {
		if _, err := app.Append(0, labels.FromStrings("__name__", "churned", "i", strconv.Itoa(i)), 0, at, 1, nil, nil, storage.AppendV2Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestLanesAtTheHeadShareOneTable: however many targets are at the head, each reference is in one table, and each commit is
// decoded once.
func TestLanesAtTheHeadShareOneTable(t *testing.T) {
	l := openLog(t, Options{})
	var readers []*Reader
	for i := range 20 {
		r, err := l.Reader(fmt.Sprint(i), ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		readers = append(readers, r)
	}
	for round := range 5 {
		commitNames(t, l, 0, 100, int64(round))
		entries := map[*Entry]bool{}
		for _, r := range readers {
			e := nextEntry(t, r)
			entries[e] = true
			_, _, _ = r.step() // reaches the head
			if r.cursor != nil || e.Count() != 100 {
				t.Fatalf("round %d: a target reads alone, %d samples", round, e.Count())
			}
		}
		if round > 0 && len(entries) != 1 {
			t.Errorf("round %d: the commit was decoded %d times", round, len(entries))
		}
	}
	if n := l.targets.reading.cursor.decode.series.size(); n != 100 {
		t.Errorf("%d references of 100 series", n)
	}
	l.read.mu.Lock()
	defer l.read.mu.Unlock()
	for s := range l.read.byHash.All() {
		if n := s.series.holders.Load(); n != 1 {
			t.Fatalf("%s is in %d tables", s.series.Labels, n)
		}
	}
}

// TestTargetThatIsDownHoldsNoSeries: while series come and go, a target that has let its window go, and one that has stopped
// reading, keep none of them.
func TestTargetThatIsDownHoldsNoSeries(t *testing.T) {
	l := openLog(t, Options{Settings: Settings{MaxBytes: 128 << 10}}) // segments end at an eighth of it
	var readers []*Reader
	for _, name := range []string{"up", "down", "stuck"} {
		r, err := l.Reader(name, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		readers = append(readers, r)
	}
	l.targets.reading.ahead = 64 << 10
	const each, rounds = 100, 300
	most := 0
	for i := range rounds {
		commitNames(t, l, i*each, each, int64(i))
		for n, r := range readers {
			if n == 0 || i < 3 {
				_ = nextEntry(t, r)
				_, _, _ = r.step()
			}
		}
		if i == 3 {
			readers[1].Rewind()
		}
		if i > 10 {
			most = max(most, l.read.byHash.Len())
		}
	}
	head := l.targets.reading.cursor.decode.series.size()
	if l.head().Segment < 10 {
		t.Fatalf("%d segments: no series were idle for long", l.head().Segment)
	}
	if n := readers[1].cursor.decode.series.size(); n != 0 || !readers[2].at.cut {
		t.Errorf("the target that is down holds %d series; the one that does not read is cut off: %t", n, readers[2].at.cut)
	}
	if n := l.read.byHash.Len(); n != head || most > each*rounds/5 {
		t.Errorf("%d series are held, %d by the reading; the most were %d of %d", n, head, most, each*rounds)
	}
}
