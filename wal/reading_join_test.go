package wal

import (
	"slices"
	"testing"
)

// openFollowers opens targets of a log, which read one commit and follow the reading then.
func openFollowers(t *testing.T, l *Log, names ...string) (readers []*Reader) {
	t.Helper()
	for _, name := range names {
		r, err := l.Reader(name, ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		readers = append(readers, r)
	}
	commitNames(t, l, 0, 10, 1)
	for _, r := range readers {
		_ = nextEntry(t, r)
		if _, _, _ = r.step(); r.at == nil {
			t.Fatal("a target at the head does not follow")
		}
	}
	return readers
}

// TestEntryOfALaneThatLeftIsKept: an entry is valid after its lane has left, also when the last lane takes the cursor that
// decoded the entry, and reads on.
func TestEntryOfALaneThatLeftIsKept(t *testing.T) {
	l := openLog(t, Options{})
	readers := openFollowers(t, l, "closes", "begins again")
	commitNames(t, l, 0, 10, 2)
	e := nextEntry(t, readers[0])
	if same := nextEntry(t, readers[1]); same != e {
		t.Fatal("the targets do not share the entry")
	}
	if err := readers[0].Close(); err != nil {
		t.Fatal(err)
	}
	commitNames(t, l, 0, 10, 3)
	readers[1].Rewind()
	for range 3 {
		_ = nextEntry(t, readers[1])
	}
	if at := e.Samples[0].T; at != 2 || e.End.Commit != 2 {
		t.Errorf("the entry of commit 2 became that of commit %d, with times of %d", e.End.Commit, at)
	}
}

// TestNewTargetDoesNotCutOthersOff: a target that reaches the head while the others have not read the newest commits yet does
// not make them read the segment again.
func TestNewTargetDoesNotCutOthersOff(t *testing.T) {
	l := openLog(t, Options{})
	readers := openFollowers(t, l, "a", "b")
	commitNames(t, l, 0, 10, 2)
	commitNames(t, l, 0, 10, 3)
	r, err := l.Reader("new", ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if _, _, _ = r.step(); r.at == nil {
		t.Error("the new target does not follow")
	}
	for at := int64(2); at <= 3; at++ {
		for _, r := range readers {
			if e := nextEntry(t, r); r.at == nil || e.Samples[0].T != at {
				t.Errorf("target %s was cut off before commit %d, and reads commit %d", r.target.name, at, e.End.Commit)
			}
		}
	}
	commitNames(t, l, 0, 10, 4)
	e := nextEntry(t, r)
	if a, b := nextEntry(t, readers[0]), nextEntry(t, readers[1]); a != e || b != e || e.Samples[0].T != 4 {
		t.Errorf("commit %d is not shared", e.End.Commit)
	}
}

// TestOldHeadSkipsNoCommit: a lane that saw the head before another lane read further finds the commits between them. The
// other lane's read failed, and the commit at the older head is damaged.
func TestOldHeadSkipsNoCommit(t *testing.T) {
	p := newPlan(1, 4, 10)
	l := newFakeLog(p.segments...)
	damaged := append([]byte(nil), l.files[0]...)
	damaged[p.commits[1].mark.Offset-1] ^= 0x55 // of the commit record
	l.files[0] = damaged
	l.mark = p.commits[0].mark
	ts := memTargets(t, newMemDir(), targetsOptions{})
	var readers []*Reader
	for _, name := range []string{"a", "b"} {
		r, err := ts.open(l, name, ReaderOptions{StartAt: StartOldest})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		if _, e, err := r.step(); e == nil || err != nil {
			t.Fatal(e, err)
		}
		_, _, _ = r.step()
		readers = append(readers, r)
	}
	old := p.commits[1].mark
	l.mark = p.commits[2].mark
	l.readErr = errDisk
	if _, _, err := readers[0].step(); err == nil || readers[0].at != nil {
		t.Fatal("the read did not fail")
	}
	l.readErr = nil
	var got []uint64
	e, err := readers[1].read(old)
	l.mark = p.commits[3].mark
	for err == nil && e != nil {
		got = append(got, e.End.Commit)
		_, e, err = readers[1].step()
	}
	if err != nil || !slices.Contains(got, p.commits[2].mark.Commit) {
		t.Errorf("the target gets the commits %d, without the intact commit 3: %v", got, err)
	}
}
