package wal

import (
	"slices"
	"testing"
	"testing/synctest"
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
