package wal

import (
	"bytes"
	"maps"
	"testing"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/internal/segmenttest"
	"hwsagent/wal/queue"
)

// FuzzSavepointFiles: no two files make the reader of savepoints panic, and whatever it takes from them, a
// process goes on with and finds again.
func FuzzSavepointFiles(f *testing.F) {
	dir := newMemDir()
	ts, err := openTargets(dir, targetsOptions{})
	if err != nil {
		f.Fatal(err)
	}
	ts.set("a", newTarget(ts.store, "a", queue.Stored{}))
	if err := ts.begin(Mark{}); err != nil {
		f.Fatal(err)
	}
	two := dir.entries[savepointNames[1]].data.bytes()[:4*slotSize]
	one := bytes.Clone(two[slotSize : 2*slotSize])
	f.Add(dir.entries[savepointNames[0]].data.bytes()[:4*slotSize], two)
	f.Add([]byte{}, one)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		dir := newMemDir()
		for i, data := range [][]byte{a, b} {
			dir.entries[savepointNames[i]] = fresh(data)
		}
		dir.durable = maps.Clone(dir.entries)
		ts, err := openTargets(dir, targetsOptions{})
		if err != nil {
			return
		}
		if err := ts.begin(Mark{}); err != nil {
			t.Fatal(err)
		}
		again, err := openTargets(dir.crash(), targetsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(again.byName) != len(ts.byName) {
			t.Fatalf("%d targets, %d after a power cut", len(ts.byName), len(again.byName))
		}
	})
}

// FuzzSegment: no file makes the reader panic, hang or break its arithmetic.
func FuzzSegment(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 100))
	for _, compress := range []byte{0, segment.FlagSnappy} {
		s := segmenttest.New(0, ID{9}, 0, 0)
		s.Compress = compress
		s.Commit(3, 1, 1, segmenttest.Series(1, 2, 3), segmenttest.Samples(1, 1, 2, 3))
		s.Commit(1, 2, 2, segment.AppendFamilies(nil, []segment.Family{{Ref: 1, Name: "x"}}), segmenttest.Samples(2, 2))
		s.Commit(1, 3, 3, []byte{segment.TypeEnded, 2, 4}, segmenttest.Series(1), segmenttest.Samples(3, 1))
		f.Add(s.B)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		last := segmenttest.New(1, ID{9}, 1<<20, 1<<30)
		last.Commit(1, 9, 9, segmenttest.Series(1), segmenttest.Samples(9, 1))
		l := newFakeLog(last)
		l.files[0] = b
		c := newSilentCursor(l)
		defer c.close()
		for {
			before := c.last
			e, err := c.next(l.head())
			if e == nil {
				if err == nil && c.last.Commit != l.head().Commit {
					t.Fatal("the intact segment was not read")
				}
				return
			}
			if before.Commit >= e.End.Commit {
				t.Fatal("commit numbers do not grow")
			}
		}
	})
}

// FuzzRecordReader: no bytes in a verified record make the decoders panic, hang or
// allocate without bounds, and a record framed by the page reader comes back as it was.
func FuzzRecordReader(f *testing.F) {
	f.Add(segmenttest.Series(1, 2, 3))
	f.Add(segmenttest.Samples(5, 1, 2, 3))
	f.Add(segment.AppendFamilies(nil, []segment.Family{{Ref: 1, Name: "x"}}))
	f.Add(segment.AppendCommit(nil, segment.Commit{Number: 1, Records: 1, Samples: 1, Total: 1}))
	f.Add(segment.AppendHeader(nil, segment.Header{Version: segment.Version, Number: 1}))
	f.Add([]byte{segment.TypeEnded, 2, 2, 1, 4})
	for typ := range byte(15) {
		f.Add([]byte{typ, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
	}
	f.Fuzz(func(t *testing.T, rec []byte) {
		if len(rec) == 0 {
			return
		}
		d := newEntryDecoder(newSeriesMap())
		_ = d.decode(segmenttest.Series(1, 2, 3)) // known to be good
		for range 2 {
			d.reset()
			_ = d.decode(rec) // must return; its error is as good as none here
			_ = d.skim(rec)
		}
		if rec[0] == segment.TypeHeader {
			_, _ = segment.DecodeHeader(rec)
		}
		_, _ = segment.DecodeCommit(rec)

		for _, compress := range []byte{0, segment.FlagSnappy} {
			var s segmenttest.Builder
			s.Record(rec, compress)
			var p segment.PageReader
			p.Reset(bytes.NewReader(s.B), int64(len(s.B)), true)
			got, ok, err := p.Next(nil)
			if err != nil || !ok || !bytes.Equal(got, rec) {
				t.Fatalf("got %x, %v, %v; want %x", got, ok, err, rec)
			}
		}
	})
}

// FuzzNames: a file among the segments stands for one number, or for none.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"00000001", "0000000001", "123456789", "99999999999999999999", "0000000a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := segment.ParseName(s); ok && (n < 0 || segment.Name(n) != s) {
			t.Errorf("%q is segment %d", s, n)
		}
	})
}
