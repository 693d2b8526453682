package wal

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/segment"
	"hwsagent/wal/queue"
)

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

// A page that the disk refuses for several reads while the log is opened, and then reads
// again, costs nothing: a start neither removes nor skips what the disk still has.
func TestPageUnreadableForSeveralReadsAtOpen(t *testing.T) {
	w := writeLog(t)
	for n := range 4 {
		for page := range int64(2) {
			for _, times := range []int{2, 3, 4, 10} {
				what := fmt.Sprintf("segment %d, page %d refused %d times", n, page, times)
				synctest.Test(t, func(t *testing.T) {
					segments, saves := w.dirs(harm{})
					left := times
					segments.unreadable = func(name string, off int64) error {
						if name != segment.Name(n) || off/segment.PageSize != page || left == 0 {
							return nil
						}
						left--
						return errDisk
					}
					l, err := Open(w.options(segments, saves))
					if err != nil {
						t.Fatal(err)
					}
					defer l.Close()
					if left == times && n == 3 {
						t.Errorf("%s: the newest segment was not read", what)
					}
					r := openReader(t, l, "all", ReaderOptions{})
					if err := commitFloats(l, 3, 1, 1); err != nil {
						t.Fatal(err)
					}
					h := harm{what: what, touched: func(writtenCommit) bool { return false }}
					if missing := w.compare(l, r, h, w.commits); missing != 0 {
						t.Errorf("%s: %d samples are missing", what, missing)
					}
				})
			}
		}
	}
}

// TestUnreadableWhileTheDiskFails: a disk that refuses all reads for ten minutes costs nothing if it refuses writes as well, since no
// page is at fault then. If the log is written meanwhile, or refused for want of space, pages that cannot be read are given up.
func TestUnreadableWhileTheDiskFails(t *testing.T) {
	w := writeLog(t)
	for _, tc := range []struct {
		writes error
		keeps  bool
	}{{nil, false}, {syscall.EIO, true}, {syscall.ENOSPC, false}, {syscall.EDQUOT, false}, {syscall.EROFS, false}} {
		t.Run(fmt.Sprint(tc.writes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				segments, saves := w.dirs(harm{})
				l, err := Open(w.options(segments, saves))
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				r := openReader(t, l, "all", ReaderOptions{})
				defer r.Close()
				end, refused := time.Now().Add(10*time.Minute), 0
				failing := func() bool { return time.Now().Before(end) }
				newest := segment.Name(l.head().Segment)
				segments.unreadable = func(name string, _ int64) error {
					if !failing() || name > newest { // the kernel has what was just written in memory
						return nil
					}
					refused++
					return errDisk
				}
				segments.fault = func(op string) (int, error) {
					if failing() && op != "remove" {
						return 0, tc.writes
					}
					return 0, nil
				}
				for at := int64(0); failing(); at++ {
					if err := commitFloats(l, 3, at, 1); tc.writes != nil && failing() && !errors.Is(err, tc.writes) {
						t.Fatalf("a commit to the failing disk: %v, want %v", err, tc.writes)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					if e, err := r.Next(ctx); err == nil {
						o := e.Missing
						o.Delivered = e.Count()
						r.Advance(e.End, o)
					}
					cancel()
					time.Sleep(time.Second)
				}
				if err := commitFloats(l, 3, 1e6, 1); err != nil {
					t.Fatal(err)
				}
				for r.Pending() > 0 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					e, err := r.Next(ctx)
					cancel()
					if err != nil {
						t.Fatalf("%v, %+v, pending %d", err, r.Ledger(), r.Pending())
					}
					o := e.Missing
					o.Delivered = e.Count()
					r.Advance(e.End, o)
				}
				g := r.Ledger()
				if refused == 0 || !g.Balanced() || g.GivenUp() != g.Dropped[queue.Damage] || (g.GivenUp() == 0) != tc.keeps {
					t.Errorf("refused %d reads, ledger %+v", refused, g)
				}
			})
		})
	}
}
