package wal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal/queue"
)

// TestReadersShareSeries: readers that come, go, lag and read again while series come and go and are said other things of have
// each sample under its labels, never two label sets in a slot of a commit, none that is gone, and leave nothing behind.
func TestReadersShareSeries(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	log, err := Open(Options{Dir: t.TempDir(), SegmentBytes: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	const readers, commits, perCommit = 4, 400, 20
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for n := range readers {
		r, err := log.Reader(strconv.Itoa(n), ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(n+1)))
			for last := uint64(0); last < commits; {
				switch rnd.IntN(100) {
				case 0:
					if r.Close() != nil {
						t.Error("close")
					}
					if r, err = log.Reader(strconv.Itoa(n), ReaderOptions{}); err != nil {
						t.Error(err)
						return
					}
				case 1:
					r.Rewind()
				}
				e, err := r.Next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				checkShared(t, e)
				if n != 0 || rnd.IntN(10) == 0 { // reader 0 reads again what it has read
					r.Advance(e.End, queue.Outcome{Delivered: log.targets.get(strconv.Itoa(n)).undelivered(e.End)})
				}
				last = e.End.Commit
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	for i := range commits {
		app := log.AppenderV2(t.Context())
		for range perCommit {
			id := i/20 + rnd.IntN(60) // the window of names moves
			o := storage.AppendV2Options{Metadata: metadata.Metadata{Type: "gauge", Help: fmt.Sprint("help ", rnd.IntN(3))}}
			if _, err := app.Append(0, labels.FromStrings("__name__", "m", "id", strconv.Itoa(id)), 0, int64(i), float64(id), nil, nil, o); err != nil && !errors.Is(err, storage.ErrDuplicateSampleForTimestamp) {
				t.Error(err)
			}
		}
		if err := app.Commit(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	all := log.series
	if n := all.held(); n != 0 || all.byHash.Len() != all.size() {
		t.Errorf("%d series are held, %d others are left of %d", n, all.byHash.Len()-n, all.size())
	}
	all.mu.Lock()
	all.forgetLocked(func(*Series) bool { return true })
	all.mu.Unlock()
	if n := all.byHash.Len(); n != 0 || len(all.free) != int(all.slots) {
		t.Errorf("%d series are left, %d of %d slots are free", n, len(all.free), all.slots)
	}
}

// checkShared checks a commit in which the value of each sample is its label id.
func checkShared(t *testing.T, e *Entry) {
	t.Helper()
	slots := map[int]string{}
	for _, s := range e.Samples {
		id := s.Series.Labels().Get("id")
		if id != strconv.Itoa(int(s.V)) || s.Series.Gone() {
			t.Errorf("commit %d: %v of %s, which is gone: %t", e.End.Commit, s.V, s.Series.Labels(), s.Series.Gone())
		}
		if other, ok := slots[s.Series.Slot()]; ok && other != id {
			t.Errorf("commit %d: %s and %s are in slot %d", e.End.Commit, id, other, s.Series.Slot())
		}
		slots[s.Series.Slot()] = id
	}
	if e.Missing.Sum() > 0 {
		t.Errorf("commit %d misses %+v", e.End.Commit, e.Missing)
	}
}

// undelivered is how many samples up to end have no outcome.
func (t *target) undelivered(end Mark) uint64 {
	sp := t.savepoint()
	return end.Total - sp.Acked().Total
}

// TestMetadataThatChangesLeavesOneSeries: while readers are on both sides of a change of metadata, each has a series with the metadata
// where it is, in one slot. Afterwards there is one, and the other is gone, although batches over the change were open.
func TestMetadataThatChangesLeavesOneSeries(t *testing.T) {
	l := openLog(t, Options{})
	first, second := openReader(t, l, "first", ReaderOptions{StartAt: StartOldest}), openReader(t, l, "second", ReaderOptions{StartAt: StartOldest})
	add := func(app storage.AppenderV2, ts int64, help string) {
		t.Helper()
		o := storage.AppendV2Options{Metadata: metadata.Metadata{Help: help}, RejectOutOfOrder: true}
		if _, err := app.Append(0, sampleOf(0), 0, ts, 1, nil, nil, o); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(app storage.AppenderV2) {
		t.Helper()
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	before, over := l.AppenderV2(t.Context()), l.AppenderV2(t.Context())
	add(before, 1, "")
	add(over, 2, "")
	commit(before)
	plain := nextEntry(t, first).Samples[0].Series
	for _, help := range []string{"one", "two"} {
		after := l.AppenderV2(t.Context())
		add(after, 3, help)
		if help == "one" {
			if err := after.Rollback(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		commit(after)
	}
	commit(over)
	if s := nextEntry(t, second).Samples[0].Series; s != plain {
		t.Errorf("the second reader has another series, with help %q", s.Meta().Help)
	}
	described := nextEntry(t, first).Samples[0].Series
	if described == plain || described.Slot() != plain.Slot() || described.Meta().Help != "two" || plain.Meta().Help != "" {
		t.Errorf("help %q in slot %d after %q in slot %d", described.Meta().Help, described.Slot(), plain.Meta().Help, plain.Slot())
	}
	if s := nextEntry(t, first).Samples[0].Series; s != described {
		t.Errorf("the batch over the change has another series, with help %q", s.Meta().Help)
	}
	for range 2 {
		if s := nextEntry(t, second).Samples[0].Series; s != described {
			t.Errorf("the second reader has another series, with help %q", s.Meta().Help)
		}
	}
	if n := l.series.byHash.Len(); n != 1 || !plain.Gone() || described.Gone() {
		t.Errorf("%d series are left; the first is gone: %t, the second: %t", n, plain.Gone(), described.Gone())
	}
	for _, r := range []*Reader{first, second} {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	third := openReader(t, l, "third", ReaderOptions{StartAt: StartOldest})
	for _, help := range []string{"", "two", "two"} {
		if s := nextEntry(t, third).Samples[0].Series; s.Meta().Help != help || s.Gone() || s == plain || s == described {
			t.Errorf("a reader that comes later has help %q, want %q; gone: %t", s.Meta().Help, help, s.Gone())
		}
	}
	if n := l.series.byHash.Len(); n != 1 || !described.Gone() {
		t.Errorf("%d series are left; the second is gone: %t", n, described.Gone())
	}
	late := l.AppenderV2(t.Context())
	if _, err := late.Append(0, sampleOf(0), 0, 2, 5, nil, nil, storage.AppendV2Options{RejectOutOfOrder: true}); !errors.Is(err, storage.ErrOutOfOrderSample) {
		t.Errorf("a sample before the newest: %v", err)
	}
}
