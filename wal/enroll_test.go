package wal

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hwsagent/wal/queue"
)

// TestEnrollEveryFault fails each call that enrolling makes, alone or with all that follow: if enrolling
// fails, nothing has changed, now, and as soon as the disk is well for a process that comes later, and after a power cut.
func TestEnrollEveryFault(t *testing.T) {
	for _, lasting := range []int{0, 1000} {
		enrollEveryFault(t, lasting)
	}
}

func enrollEveryFault(t *testing.T, lasting int) {
	known := Enrolment{Name: "known"}
	list := []Enrolment{known, {Name: "new"}, {Name: "old", StartAt: StartOldest}}
	refused := 0
	for call := 1; ; call++ {
		fired := int64(0)
		synctest.Test(t, func(t *testing.T) {
			segments, saves := newMemDir(), newMemDir()
			l := openLog(t, memOptions(t, segments, saves))
			defer l.Close()
			if err := commitFloats(l, 3, 1, 1); err != nil {
				t.Fatal(err)
			}
			if err := l.Enroll([]Enrolment{known}); err != nil {
				t.Fatal(err)
			}
			_, f := faultPlan{from: call, to: call + lasting, err: syscall.EIO}.inject(saves)
			err := l.Enroll(list)
			saves.fault = nil
			// An error of the record that is written behind a durable state is none of enrolling: what is durable then is checked below.
			if fired = f.Load(); err != nil {
				refused++
				if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), savepointDir) || !strings.Contains(err.Error(), `target "`) {
					t.Fatalf("call %d failed: %v", call, err)
				}
				if err := l.targets.save(); err != nil {
					t.Fatal(err)
				}
				for what, dir := range map[string]*memDir{"kill": saves.kill(), "power cut": saves.crash()} {
					if diff := cmp.Diff([]string{"known"}, savedIn(t, dir)); diff != "" {
						t.Errorf("call %d failed, after a %s: %s", call, what, diff)
					}
				}
				if ts := l.targets.all(); len(ts) != 1 || !ts[0].enrolled {
					t.Errorf("call %d failed, and %d targets are known", call, len(ts))
				}
				if err := l.Enroll(list); err != nil { // the next reload
					t.Fatal(err)
				}
			}
			for what, dir := range map[string]*memDir{"kill": saves.kill(), "power cut": saves.crash()} {
				if diff := cmp.Diff([]string{"known", "new", "old"}, savedIn(t, dir)); diff != "" {
					t.Errorf("after a %s: %s", what, diff)
				}
			}
			if l, _ := l.Account("old"); l.Pending != 3 {
				t.Errorf("the target that begins at the oldest: %+v", l)
			}
		})
		if fired == 0 {
			if call < 3 || lasting > 0 && refused < 2 {
				t.Errorf("only %d calls, %d refused", call-1, refused)
			}
			return
		}
	}
}

// TestEnrolledKeepsItsData: what is committed after Enroll reaches the target, however
// long it cannot be opened and however often the process restarts; without an enrolled
// target it would be gone.
func TestEnrolledKeepsItsData(t *testing.T) {
	for _, enrolled := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			segments, saves := newMemDir(), newMemDir()
			o := memOptions(t, segments, saves)
			o.Retain, o.OrphanTTL, o.SegmentBytes = 0, time.Minute, 1<<15
			l := openLog(t, o)
			if enrolled {
				if err := l.Enroll([]Enrolment{{Name: "a"}}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 40 {
				if i%10 == 9 { // a kill
					_ = l.Close()
					o.Dir, o.wrap = "", memOptions(t, segments, saves).wrap
					l = openLog(t, o)
					if enrolled {
						if err := l.Enroll([]Enrolment{{Name: "a"}}); err != nil {
							t.Fatal(err)
						}
					}
				}
				if err := commitNoise(l, 500, int64(i)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // housekeeping, and the time of orphans
			}
			if len(l.Orphans()) != 0 {
				t.Errorf("orphans %+v", l.Orphans())
			}
			if n := segments.files(); enrolled != (n > 5) {
				t.Fatalf("enrolled %v: %d segments", enrolled, n)
			}
			if enrolled {
				if a, bytes := l.Account("a"); a.Pending != 40*500 || !a.Balanced() || bytes == 0 {
					t.Errorf("account %+v, %d bytes", a, bytes)
				}
				r := openReader(t, l, "a", ReaderOptions{})
				if n, missing := ackAll(t, l, r); n != 40*500 || missing != (queue.Outcome{}) {
					t.Errorf("%d samples, missing %+v", n, missing)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				// It leaves the configuration: an orphan, which goes in its time.
				if err := commitFloats(l, 1, 1, 1); err != nil {
					t.Fatal(err)
				}
				if l.Orphans() != nil {
					t.Error("an enrolled target that is closed is an orphan")
				}
				if err := l.Enroll(nil); err != nil {
					t.Fatal(err)
				}
				if o := l.Orphans(); len(o) != 1 || time.Since(o[0].Since) > time.Second {
					t.Errorf("orphans %+v", o)
				}
				time.Sleep(2 * time.Minute)
				if o := l.Orphans(); len(o) != 0 {
					t.Errorf("orphans after their time %+v", o)
				}
			}
			_ = l.Close()
		})
	}
}

// A savepoint that is lost is replaced before anything is collected, durably: what the
// budget takes from then on is in the ledger although the target cannot be opened.
func TestEnrollReplacesLostSavepoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		for _, name := range savepointNames {
			f, err := saves.Open(name, os.O_RDWR|os.O_CREATE)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = f.WriteAt([]byte("garbage"), 0); err != nil {
				t.Fatal(err)
			}
		}
		o := memOptions(t, segments, saves)
		o.MaxBytes, o.Retain = 200_000, 0
		l := openLog(t, o)
		faulty := faultPlan{from: 1, to: 1000, err: syscall.EIO}
		_, fired := faulty.inject(saves)
		if err := l.Enroll([]Enrolment{{Name: "a"}}); !errors.Is(err, syscall.EIO) || fired.Load() == 0 {
			t.Errorf("not durable, and enrolled: %v", err)
		}
		saves.fault = nil
		if err := l.Enroll([]Enrolment{{Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if err := commitNoise(l, 500, int64(i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
		}
		a, _ := l.Account("a")
		if a.Appended != 100*500 || !a.Balanced() || a.Dropped[queue.Budget] == 0 {
			t.Errorf("account %+v", a)
		}
		_ = l.Close()
	})
}
