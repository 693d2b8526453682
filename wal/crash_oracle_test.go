package wal

import (
	"errors"
	"math"

	"fmt"
	"slices"
	"sync"
	"time"

	"hwsagent/wal/queue"
)

// acceptableLoss is how old an acknowledged commit may be that a power cut takes under
// `sync: 1s`.
const acceptableLoss = 1500 * time.Millisecond

// fate is what has become of a commit, as its caller knows.
type fate uint8

const (
	inFlight fate = iota // Commit has not returned
	acked                // it returned nil, or the log took the commit in after a crash
	refused              // it returned an error
)

// asked is a commit that was asked for.
type asked struct {
	samples   int
	fate      fate
	began     time.Time
	at        time.Time // of the answer
	safe      bool      // nothing may take it any more
	over      bool      // refused, and the log has been written since: never to be read
	extra     bool      // refused, and a power cut has brought it back: a target may be beyond its number
	lost      bool      // to a power cut: never to be read again
	mayReturn bool      // lost, or let go while the log was opened: a power cut may undo the removal of its segment
	unsure    bool      // a start could not make it durable: the disk refused that
	session   int

	orphaned bool // a power cut has taken the announcement of some of its series
}

// seen is a commit that was read, and from which segment.
type seen struct {
	id, segment int
	end         Mark
}

// oracle knows what a log was asked for and what it answered. It knows nothing of how
// the log works.
type oracle struct {
	mu      sync.Mutex
	commits []asked
	session int
	view    []seen // what could be read when the last process ended, in order

	// lostSamples are those of commits that power cuts took. Of unsynced sectors, a cut
	// may take the older ones and leave newer ones: holeSamples are those of lost commits
	// with one that survived behind them. (They look like damage.)
	lostSamples, holeSamples uint64

	partly bool // the last reading ended where the disk has dropped commits
	drops  bool // the disk drops what it could not sync, so a kill before that is written again takes it

	orphaned map[int]uint64 // samples of commits that survived without these

	fail func(format string, args ...any)
}

// ask notes that a commit of so many samples begins, and gives it a number.
func (o *oracle) ask(samples int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.commits = append(o.commits, asked{samples: samples, began: time.Now(), session: o.session})
	return len(o.commits) - 1
}

// answer notes what Commit returned.
func (o *oracle) answer(id int, err error, always bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &o.commits[id]
	c.at = time.Now()
	if err != nil {
		c.fate = refused
		return
	}
	c.fate, c.safe = acked, always
	began := c.began
	for i := len(o.commits) - 1; i >= 0 && o.commits[i].session == o.session; i-- {
		if c := &o.commits[i]; c.fate == refused && c.at.Before(began) {
			c.over = true
		}
	}
}

// identify finds the commit that an entry is, -1 if it is none because it is empty.
func (o *oracle) identify(e *Entry) int {
	if e.Count() == 0 {
		return -1
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	id := int(e.Samples[0].T)
	if id < 0 || id >= len(o.commits) {
		o.fail("an entry of %d samples with time %d was never committed", len(e.Samples), id)
		return -1
	}
	if gone := o.commits[id].samples - len(e.Samples); gone > 0 && e.Missing.Dropped[queue.Damage] >= uint64(gone) {
		// Its series were announced in a commit that a power cut took.
		o.orphaned[id] = uint64(gone)
	} else if gone != 0 {
		o.fail("commit %d had %d samples, and has %d", id, o.commits[id].samples, len(e.Samples))
		return -1
	}
	i := -1
	for _, s := range e.Samples {
		for i++; o.orphaned[id] > 0 && s.V != crashValue(id, i) && i < o.commits[id].samples; i++ {
		}
		if s.T != int64(id) || s.V != crashValue(id, i) || s.Series.Labels().Get("i") != crashIndex(i) {
			o.fail("commit %d is garbled: sample %d is %v at %d of %v", id, i, s.V, s.T, s.Series.Labels())
			return -1
		}
	}
	return id
}

// read is everything that can be read of a log, and how many samples count as damage;
// hollow are those up to a commit that is there without the announcement of any series.
func (o *oracle) read(l *Log) (view []seen, damage, hollow uint64) {
	start, err := oldest(l)
	if err != nil {
		o.fail("find the oldest commit: %v", err)
		return nil, 0, 0
	}
	c := newSilentCursor(l)
	defer c.close()
	c.place(start, Mark{})
	for head := l.head(); ; {
		e, err := c.next(head)
		switch o.partly = o.drops && errors.Is(err, errNotDurable); {
		case o.partly: // until it is written again
		case err != nil:
			o.fail("read: %v", err)
		}
		if e == nil || err != nil {
			return view, damage, hollow
		}
		damage += e.Missing.Dropped[queue.Damage]
		if e.Count() == 0 {
			hollow += e.Missing.Dropped[queue.Damage]
		}
		if id := o.identify(e); id >= 0 {
			view = append(view, seen{id, e.End.Segment, e.End})
		}
	}
}

// crash is what has happened since the view was taken.
type crash struct {
	power    bool      // a power cut was among it
	at       time.Time // of the last one
	fault    time.Time // when the disk failed last
	unsynced time.Time // when it failed to sync a segment last
	unread   time.Time // when it failed to read a log that was being opened last
	uncut    bool      // a failed commit could not be cut off
}

// age is for how long a commit could have been made durable.
func (after crash) age(c *asked) time.Duration {
	// After a failed fsync only logging again helps, and after a kill writing again; both take a disk that works. A start that
	// waits until it can read what the last process left writes nothing meanwhile.
	if (after.unsynced.After(c.at) || after.unread.After(c.at) || c.unsure) && after.fault.After(c.at) {
		return after.at.Sub(after.fault)
	}
	return after.at.Sub(c.at)
}

// reopened judges what a log holds that was opened after a crash, and returns that.
func (o *oracle) reopened(l *Log, after crash, t *tally) []seen {
	partly := o.partly // when the last process ended
	now, damage, hollow := o.read(l)
	there := make([]bool, len(o.commits))
	flew := map[int]bool{} // sessions of which a commit without an answer survived: those are in no known order
	first := math.MaxInt   // segment
	for _, s := range now {
		id, c := s.id, &o.commits[s.id]
		first = min(first, s.segment)
		switch {
		case there[id]:
			o.fail("commit %d is there twice", id)
		case c.lost && c.mayReturn && after.power:
			c.lost = false
		case c.lost:
			o.fail("commit %d was lost and is back", id)
		case c.over && after.power && !o.safeAfter(id):
			c.over, c.extra = false, true // a power cut took all that was written after it
		case c.over:
			o.fail("commit %d was refused, and the log written afterwards; it is there", id)
		case c.fate == refused && !after.power && !after.uncut:
			o.fail("commit %d was refused and cut off; after a kill it is there", id)
		}
		there[id] = true
		if c.fate != acked {
			t.Survivors++
			c.at, flew[c.session] = time.Now(), true
		}
		c.fate = acked
	}
	prefix := true
	var behind uint64 // samples of lost commits with no commit that survived after them yet
	for _, s := range o.view {
		id, c := s.id, &o.commits[s.id]
		prefix = prefix && !there[id]
		if prefix && s.segment < first && len(now) > 0 {
			if !o.mayBeCut(c, after) {
				continue // let go while the log was opened; the targets' ledgers will tell
			}
			c.mayReturn = true
		}
		if there[id] {
			o.holeSamples, behind = o.holeSamples+behind, 0
			continue
		}
		behind += uint64(c.samples)
		if c.fate != acked {
			continue
		}
		t.Lost++
		switch age := after.age(c); {
		case !after.power && (!o.drops || after.unsynced.Before(c.began)):
			t.Unforgiven++
			o.fail("commit %d was acknowledged and is lost to a kill", id)
		case c.safe:
			t.Unforgiven++
			o.fail("commit %d was durable and is lost to a power cut", id)
		case age > acceptableLoss:
			t.Unforgiven++
			o.fail("commit %d, acknowledged %v before the power cut, is lost", id, age)
		default:
			t.Oldest = max(t.Oldest, age)
		}
		c.lost = true
		o.lostSamples += uint64(c.samples)
	}
	if after.power {
		o.undone(there)
	}
	if partly {
		o.dropped(there, after)
	}
	if len(now) > 0 && len(o.view) > 0 && now[len(now)-1].end.Commit > o.view[len(o.view)-1].end.Commit {
		o.holeSamples += behind // what survived behind it had no answer yet; it may have been asked for earlier
	}
	survived := false
	for i, c := range slices.Backward(o.commits) {
		survived = survived || there[i]
		if c.fate == acked {
			continue
		}
		// It is of an earlier process, and not there; a power cut may bring back what the start could not cut off durably.
		o.commits[i].over = c.over || l.refreshAgain == nil
		if (survived || flew[c.session]) && !c.over {
			o.holeSamples += uint64(c.samples)
		}
	}
	for id, n := range o.orphaned {
		if c := &o.commits[id]; !c.orphaned && after.power {
			c.orphaned = true
			o.holeSamples += n
		}
	}
	if after.power {
		o.holeSamples += hollow
	}
	if most := o.mostDamage(); damage > most {
		o.fail("%d samples count as damage, and no more than %d of commits between ones that survived are gone", damage, most)
	}
	for _, s := range now {
		o.commits[s.id].unsure = l.refreshAgain != nil
	}
	if o.view = now; l.refreshAgain == nil {
		o.settled(now)
	}
	o.total(l)
	return now
}

// undone notes what a power cut has left of segments that the log had let go: their removal may be undone, and some of them have
// lost what was not durable. A target that begins with the oldest data misses that.
func (o *oracle) undone(there []bool) {
	viewed := make([]bool, len(o.commits))
	for _, s := range o.view {
		viewed[s.id] = true
	}
	back := false
	var behind uint64
	for id := range o.commits {
		c := &o.commits[id]
		switch {
		case there[id]:
			back = back || !viewed[id]
			o.holeSamples, behind = o.holeSamples+behind, 0
		case back && !viewed[id] && !c.lost && c.fate == acked && !c.safe:
			c.lost = true
			o.lostSamples += uint64(c.samples)
			behind += uint64(c.samples)
		}
	}
}

// dropped notes which commits the disk had dropped after a failed fsync when the process ended. Commits that were in flight together are
// in the log in any order, so one behind the last that was read may have a smaller number.
func (o *oracle) dropped(there []bool, after crash) {
	last, viewed := -1, make([]bool, len(o.commits))
	for _, s := range o.view {
		last, viewed[s.id] = max(last, s.id), true
	}
	survived := false // a later one
	for id, c := range slices.Backward(o.commits) {
		if id <= last && (viewed[id] || c.at.Before(o.commits[last].began)) {
			continue
		}
		survived = survived || there[id]
		if c.fate != acked || c.lost || c.safe || there[id] || after.unsynced.Before(c.began) {
			continue
		}
		o.commits[id].lost = true
		o.lostSamples += uint64(c.samples)
		if survived {
			o.holeSamples += uint64(c.samples)
		}
	}
}

// safeAfter reports whether a commit that began after the answer to that one may not be lost any more.
func (o *oracle) safeAfter(id int) bool {
	for i := id + 1; i < len(o.commits); i++ {
		if c := &o.commits[i]; c.safe && c.began.After(o.commits[id].at) {
			return true
		}
	}
	return false
}

// skipped counts the samples of refused commits that power cuts brought back in place of acknowledged ones, and that did not come to a
// target: one that had the acknowledged ones is beyond them.
func (o *oracle) skipped(received []int) (n uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, c := range o.commits {
		if c.extra && (id >= len(received) || received[id] == 0) {
			n += uint64(c.samples)
		}
	}
	return n
}

// mayBeCut reports whether a power cut may have taken a commit together with all that its
// segment had: that was not durable when the next segment began, and some of that survived.
func (o *oracle) mayBeCut(c *asked, after crash) bool {
	return after.power && c.fate == acked && !c.safe && after.age(c) <= acceptableLoss
}

// mostDamage is how many samples may count as damage: none if no commit was lost before
// one that survived. If there was one, what was lost otherwise may be beside it.
func (o *oracle) mostDamage() uint64 {
	if o.holeSamples == 0 {
		return 0
	}
	return o.holeSamples + o.lostSamples
}

// settled notes that what is in the log is durable.
func (o *oracle) settled(view []seen) {
	o.view = view
	for _, s := range view {
		o.commits[s.id].safe = true
	}
}

// absent says of each commit whether it is not in the log that has just been opened.
func (o *oracle) absent() []bool {
	gone := make([]bool, len(o.commits))
	for id := range gone {
		gone[id] = true
	}
	for _, s := range o.view {
		gone[s.id] = false
	}
	return gone
}

// total judges the total of the log's head: it counts what was taken in, and of what
// was lost only what somebody may have had.
func (o *oracle) total(l *Log) {
	var sum uint64
	for i := range o.commits {
		if c := &o.commits[i]; c.fate == acked && !c.lost {
			sum += uint64(c.samples)
		}
	}
	if total := l.head().Total; total < sum || total > sum+o.lostSamples+o.holeSamples {
		o.fail("the head's total is %d, for %d samples and %d that were lost", total, sum, o.lostSamples)
	}
}

func crashValue(id, i int) float64 { return float64(id*10_000 + i) }

func crashIndex(i int) string { return fmt.Sprint(i) }
