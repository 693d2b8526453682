package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
)

// stutter reads a part of what it is asked for, and fails: what an interrupted or failing
// disk may do any number of times before it works again.
type stutter struct {
	io.ReaderAt
	rng   *rand.Rand
	fired int
}

func (s *stutter) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.ReaderAt.ReadAt(p[:s.rng.IntN(len(p)+1)], off)
	if err == nil && n < len(p) {
		s.fired++
		err = errDisk
	}
	return n, err
}

// An error of the disk that passes costs nothing, wherever it happens: also not in a segment
// that is complete.
func TestReadErrorsPass(t *testing.T) {
	const seed = 23
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, final := range []bool{false, true} {
		for round := range 20 {
			var s segmentBuilder
			want := randomRecords(rng, 300)
			for i, rec := range want {
				s.record(rec, flagSnappy)
				if left := pageSize - len(s.b)%pageSize; i%50 == 49 && left < pageSize {
					s.b = append(s.b, make([]byte, left)...) // padding, as the stock writer makes it
				}
			}
			r := &stutter{ReaderAt: bytes.NewReader(s.b), rng: rng}
			var p pageReader
			p.reset(r, int64(len(s.b)), final)
			var got [][]byte
			for {
				rec, ok, err := p.next(nil)
				if err != nil && !errors.Is(err, errDisk) {
					t.Fatal(err)
				}
				if err != nil {
					continue
				}
				if !ok {
					break
				}
				got = append(got, append([]byte{}, rec...))
			}
			if !slices.EqualFunc(want, got, bytes.Equal) || p.skipped != 0 || r.fired == 0 {
				t.Errorf("final %v, round %d: %d of %d records after %d errors, %d bytes skipped", final, round, len(got), len(want), r.fired, p.skipped)
			}
		}
	}
}

// A reader that the disk refuses for a moment gets everything all the same.
func TestUnreadableForAMoment(t *testing.T) {
	w := writeLog(t)
	for at := 1; ; at++ {
		fired := false
		synctest.Test(t, func(t *testing.T) {
			segments, saves := w.dirs(harm{})
			l, err := Open(w.options(segments, saves))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			reads := 0
			segments.unreadable = func(string, int64) error {
				if reads++; reads != at {
					return nil
				}
				fired = true
				return errDisk
			}
			r, err := l.Reader("all", ReaderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			h := harm{what: fmt.Sprintf("read %d failed once", at), touched: func(writtenCommit) bool { return false }}
			if missing := w.compare(l, r, h, w.commits); missing != 0 {
				t.Errorf("%s: %d samples are missing", h.what, missing)
			}
		})
		if t.Failed() {
			return
		}
		if !fired {
			if at < 10 {
				t.Errorf("only %d reads", at-1)
			}
			return
		}
	}
}

// A disk that refuses a single read while the log is opened costs nothing.
func TestUnreadableForAMomentAtOpen(t *testing.T) {
	w := writeLog(t)
	for at := 1; ; at++ {
		fired := false
		synctest.Test(t, func(t *testing.T) {
			segments, saves := w.dirs(harm{})
			reads := 0
			segments.unreadable = func(string, int64) error {
				if reads++; reads != at {
					return nil
				}
				fired = true
				return errDisk
			}
			l, err := Open(w.options(segments, saves))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if !fired {
				return
			}
			r := openReader(t, l, "all", ReaderOptions{})
			if err := commitFloats(l, 3, 1, 1); err != nil {
				t.Fatal(err)
			}
			h := harm{what: fmt.Sprintf("read %d failed once", at), touched: func(writtenCommit) bool { return false }}
			if missing := w.compare(l, r, h, w.commits); missing != 0 {
				t.Errorf("%s: %d samples are missing", h.what, missing)
			}
		})
		if t.Failed() {
			return
		}
		if !fired {
			if at < 5 {
				t.Errorf("only %d reads", at-1)
			}
			return
		}
	}
}
