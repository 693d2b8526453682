package wal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/wal/queue"
)

// commitFor commits one sample of each of these members.
func commitFor(l *Log, t int64, members ...string) error {
	app := l.AppenderV2(context.Background())
	for _, m := range members {
		if _, err := app.Append(0, labels.FromStrings("__name__", "m", "tenant", m), 0, t, float64(t), nil, nil, storage.AppendV2Options{}); err != nil {
			return err
		}
	}
	return app.Commit()
}

// scoutUp reads up to the head as a scout does: it enrols whom it meets, and lets the
// target of the rest advance behind it.
func scoutUp(t testing.TB, l *Log) error {
	t.Helper()
	scout, err := l.Scout("e")
	if err != nil {
		return err
	}
	defer scout.Close()
	rest, err := l.Reader("e", ReaderOptions{})
	if err != nil {
		return err
	}
	defer rest.Close()
	sp := scout.Savepoint()
	before := sp.Acked()
	for before.Commit < l.head().Commit {
		e, err := scout.Next(t.Context())
		if err != nil {
			return err
		}
		for _, s := range e.Samples {
			if _, err := l.EnrollMember("e", s.Series.Labels().Get("tenant"), before); err != nil {
				return err
			}
		}
		before = e.End
		scout.Advance(e.End, queue.Outcome{Filtered: e.Count()})
		o := e.Missing
		o.Filtered += e.Count()
		rest.Advance(e.End, o)
	}
	return nil
}

// ownOf reads what a member's reader gets of its own samples, as their times.
func ownOf(t testing.TB, l *Log, member string) (times []int64) {
	t.Helper()
	r, err := l.Reader(queue.Member("e", member), ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sp := r.Savepoint()
	for last := sp.Acked().Commit; last < l.head().Commit; {
		e, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range e.Samples {
			if s.Series.Labels().Get("tenant") == member {
				times = append(times, s.T)
			}
		}
		last = e.End.Commit
	}
	return times
}

// TestMemberCrash stops the machine, or kills the process, before and after each operation
// of a life in which three members are found: each gets everything of its own that is in the
// log afterwards.
func TestMemberCrash(t *testing.T) {
	seed := uint64(20261121)
	if s := os.Getenv("HWSAGENT_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("HWSAGENT_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	type moment struct {
		what            string
		segments, saves *memDir
	}
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		var moments []moment
		snap := func(op, name string) error {
			moments = append(moments,
				moment{"killed at " + op + " " + name, segments.kill(), saves.kill()},
				moment{"cut at " + op + " " + name, segments.crash(), saves.crash()},
				moment{"torn at " + op + " " + name, segments.cut(rng), saves.cut(rng)})
			return nil
		}
		o := memOptions(t, segments, saves)
		o.Sync = SyncAlways
		l := openLog(t, o)
		if err := l.Enroll([]Enrolment{{Name: "e", Family: true}}); err != nil {
			t.Fatal(err)
		}
		segments.struck, saves.struck = snap, snap
		for i, members := range [][]string{{"a"}, {"a", "b"}, {"b"}, {"c", "a"}, {"c"}} {
			if err := errors.Join(commitFor(l, int64(i), members...), scoutUp(t, l), l.targets.save()); err != nil {
				t.Fatal(err)
			}
		}
		segments.struck, saves.struck = nil, nil
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if len(moments) < 60 {
			t.Errorf("only %d moments", len(moments))
		}
		found := map[int]int{} // how many lives ended with so many members known
		for _, m := range moments {
			l := openLog(t, memOptions(t, m.segments, m.saves))
			if err := l.Enroll([]Enrolment{{Name: "e", Family: true}}); err != nil {
				t.Fatal(m.what, err)
			}
			found[len(l.Members("e"))]++
			if err := scoutUp(t, l); err != nil {
				t.Fatal(m.what, err)
			}
			want, all := map[string][]int64{}, map[string][]int64{}
			r, err := l.Reader("all", ReaderOptions{StartAt: StartOldest})
			if err != nil {
				t.Fatal(err)
			}
			for last := uint64(0); last < l.head().Commit; {
				e, err := r.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range e.Samples {
					id := s.Series.Labels().Get("tenant")
					want[id] = append(want[id], s.T)
				}
				last = e.End.Commit
			}
			_ = r.Close()
			for id := range want {
				all[id] = ownOf(t, l, id)
			}
			if d := cmp.Diff(want, all); d != "" {
				t.Errorf("%s: what the members get: %s", m.what, d)
			}
			if err := l.Close(); err != nil {
				t.Error(m.what, err)
			}
		}
		t.Logf("%d moments; members known after them: %v", len(moments), found)
		if len(found) < 4 {
			t.Errorf("members known after the crashes: %v, want 0 to 3", found)
		}
	})
}

// A family is enrolled as a whole, and its members are orphans when it is not.
func TestFamily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		o := memOptions(t, segments, saves)
		l := openLog(t, o)
		defer func() { _ = l.Close() }()
		if _, err := l.EnrollMember("e", "a", l.head()); !errors.Is(err, ErrNoTarget) {
			t.Errorf("a member without its family: %v", err)
		}
		family := []Enrolment{{Name: "e", Family: true}, {Name: "ee"}, {Name: "e/b/c"}}
		if err := l.Enroll(family); err != nil {
			t.Fatal(err)
		}
		start := l.head()
		if err := commitFor(l, 1, "a"); err != nil {
			t.Fatal(err)
		}
		from, err := l.EnrollMember("e", "a", start)
		if err != nil || from != start.Commit {
			t.Errorf("the member begins after commit %d, %v, want %d", from, err, start.Commit)
		}
		if again, err := l.EnrollMember("e", "a", l.head()); err != nil || again != from {
			t.Errorf("enrolled again it begins after %d, %v", again, err)
		}
		if d := cmp.Diff(map[string]uint64{"a": from}, l.Members("e")); d != "" {
			t.Errorf("members: %s", d)
		}
		if err := l.Enroll(family); err != nil {
			t.Fatal(err)
		}
		if o := l.Orphans(); len(o) != 0 {
			t.Errorf("orphans of an enrolled family: %+v", o)
		}
		if err := l.Enroll([]Enrolment{{Name: "e"}, {Name: "ee"}, {Name: "e/b/c"}}); err != nil {
			t.Fatal(err)
		}
		if o := l.Orphans(); len(o) != 1 || o[0].Name != "e/a" {
			t.Errorf("orphans: %+v", o)
		}
		if err := l.Enroll(family); err != nil {
			t.Fatal(err)
		}
		r, err := l.Reader("e/a", ReaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release("e", "a"); !errors.Is(err, ErrWanted) {
			t.Errorf("released while it is open: %v", err)
		}
		if err := errors.Join(r.Close(), l.Release("e", "a")); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(savedIn(t, saves), "e/a") || len(l.Members("e")) != 0 {
			t.Errorf("released and still there: %v", savedIn(t, saves))
		}
		time.Sleep(2 * time.Second) // and the housekeeping does not bring it back
		if slices.Contains(savedIn(t, saves), "e/a") {
			t.Error("it came back")
		}
	})
}

// When a savepoint cannot be made there is no member; the next attempt makes one that
// begins where it should have.
func TestMemberEveryFault(t *testing.T) {
	for _, lasting := range []int{0, 1000} {
		memberEveryFault(t, lasting)
	}
}

func memberEveryFault(t *testing.T, lasting int) {
	for call := 1; ; call++ {
		fired := int64(0)
		synctest.Test(t, func(t *testing.T) {
			segments, saves := newMemDir(), newMemDir()
			l := openLog(t, memOptions(t, segments, saves))
			defer l.Close()
			if err := l.Enroll([]Enrolment{{Name: "e", Family: true}}); err != nil {
				t.Fatal(err)
			}
			if err := commitFor(l, 1, "a"); err != nil {
				t.Fatal(err)
			}
			_, f := faultPlan{from: call, to: call + lasting, err: syscall.EIO}.inject(saves)
			_, err := l.EnrollMember("e", "a", Mark{Log: l.head().Log})
			saves.fault = nil
			if fired = f.Load(); (err == nil) == (fired > 0 && lasting > 0) || err != nil && (!errors.Is(err, syscall.EIO) || len(l.Members("e")) != 0) {
				t.Errorf("call %d failed: %v, members %v", call, err, l.Members("e"))
			}
			if _, err := l.EnrollMember("e", "a", Mark{Log: l.head().Log}); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]int64{1}, ownOf(t, l, "a")); d != "" {
				t.Errorf("call %d failed: the member gets %s", call, d)
			}
		})
		if fired == 0 {
			if call < 3 {
				t.Errorf("only %d calls", call-1)
			}
			return
		}
	}
}
