package wal

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/segment"
)

// A process is killed before its fsync, and the disk refuses for a moment to let the next one make these commits durable. If that
// process ends at once, on a disk that is well again, Close makes them durable, or returns an error: the power may be cut then.
func TestCloseMakesDurableWhatTheStartCouldNot(t *testing.T) {
	for _, well := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d, saves := newMemDir(), newMemDir()
			l := openLog(t, memOptions(t, d, saves))
			for v := range 3 {
				if err := commitFloats(l, 3, int64(v), float64(v)); err != nil {
					t.Fatal(err)
				}
			}
			d, saves = d.kill(), saves.kill()
			fired := 0
			d.fault = func(op string) (int, error) {
				if op != "sync" {
					return 0, nil
				}
				fired++
				return 0, errDisk
			}
			l2, err := Open(memOptions(t, d, saves))
			if err != nil || fired == 0 {
				t.Fatalf("open: %v, after %d faults", err, fired)
			}
			if well {
				d.fault = nil
			}
			if err := l2.Close(); (err == nil) != well {
				t.Errorf("close, with a disk that is well again (%v): %v", well, err)
			}
			if !well {
				return
			}
			l = openLog(t, memOptions(t, d.crash(), saves.crash()))
			defer l.Close()
			r, err := l.Reader("a", ReaderOptions{StartAt: StartOldest})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if got, missing := drain(t, l, r); !slices.Equal(got, []float64{0, 1, 2}) {
				t.Errorf("read %v, missing %+v", got, missing)
			}
		})
	}
}

// The disk refuses to let a start make commits of a killed process durable, and that process begins further segments and is killed
// before it tries again. The next start makes those commits durable all the same, though they are not in the newest two segments.
func TestStartMakesDurableWhatAnEarlierStartCouldNot(t *testing.T) {
	for _, saved := range []bool{false, true} { // whether savepoints record what is durable
		for rolls := range 5 {
			for starts := 1; starts <= 2; starts++ { // that the disk refuses
				t.Run(fmt.Sprintf("saved=%v,rolls=%d,starts=%d", saved, rolls, starts), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { refreshBehind(t, saved, rolls, starts) })
				})
			}
		}
	}
}

func refreshBehind(t *testing.T, saved bool, rolls, starts int) {
	d, saves := newMemDir(), newMemDir()
	l := openLog(t, memOptions(t, d, saves))
	r, err := l.Reader("a", ReaderOptions{StartAt: StartOldest})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var want []float64
	commit := func() {
		v := len(want)
		if err := commitFloats(l, 3, int64(v), float64(v)); err != nil {
			t.Fatal(err)
		}
		want = append(want, float64(v))
	}
	commit()
	if saved {
		time.Sleep(2100 * time.Millisecond)
	}
	commit() // not durable
	for range starts {
		d, saves = d.kill(), saves.kill()
		fired := 0
		d.fault = func(op string) (int, error) {
			if op != "sync" {
				return 0, nil
			}
			fired++
			return 0, errDisk
		}
		l = openLog(t, memOptions(t, d, saves))
		if d.fault = nil; fired == 0 {
			t.Fatal("nothing was refused")
		}
		for range rolls {
			commit()
			l.writer.rollNow()
			l.writer.syncBefore()
		}
	}
	d, saves = d.kill(), saves.kill()
	_ = openLog(t, memOptions(t, d, saves))
	l = openLog(t, memOptions(t, d.crash(), saves.crash()))
	if r, err = l.Reader("a", ReaderOptions{StartAt: StartOldest}); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, missing := drain(t, l, r); !slices.Equal(got, want) {
		t.Errorf("read %v of %v, missing %+v", got, want, missing)
	}
}

// An fsync fails although the disk has written the data, the log cuts the refused commit off, and the process is killed. The disk
// refuses to let the next start make that durable. New commits, which are made durable as they are committed, get the number of the
// refused one. A power cut that brings the refused one back takes none of them.
func TestRefusedCommitThatComesBackHidesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, saves := newMemDir(), newMemDir()
		options := memOptions(t, d, saves)
		options.Sync = SyncAlways
		l := openLog(t, options)
		want := []float64{0, 1, 100, 101, 102}
		for _, v := range want[:2] {
			if err := commitFloats(l, 3, int64(v), v); err != nil {
				t.Fatal(err)
			}
		}
		failed := false
		d.fault = func(op string) (int, error) {
			if op != "sync" {
				return 0, nil
			}
			if i := d.entries[segment.Name(0)]; !failed {
				i.durable = i.data.copy()
			}
			failed = true
			return 0, errDisk
		}
		if commitFloats(l, 3, 7, 7) == nil {
			t.Fatal("no fsync failed")
		}
		d, saves = d.kill(), saves.kill()
		d.fault = func(op string) (int, error) {
			if op == "sync" {
				return 0, errDisk
			}
			return 0, nil
		}
		options = memOptions(t, d, saves)
		options.Sync = SyncAlways
		l = openLog(t, options)
		d.fault = nil
		for _, v := range want[2:] {
			if err := commitFloats(l, 3, int64(v), v); err != nil {
				t.Fatal(err)
			}
		}
		d = d.crash()
		before := d.entries[segment.Name(0)].data.size
		l = openLog(t, memOptions(t, d, saves.crash()))
		r, err := l.Reader("a", ReaderOptions{StartAt: StartOldest})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got, missing := drain(t, l, r); !slices.Equal(got, want) {
			t.Errorf("read %v of %v, missing %+v", got, want, missing)
		}
		if after := d.entries[segment.Name(0)].data.size; after == before {
			t.Errorf("the refused commit did not come back: the file has %d bytes", after)
		}
	})
}
