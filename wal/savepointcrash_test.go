package wal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/queue"
)

// A power cut is no damage, whatever it takes: while the files grow, while records of several sectors are appended, and
// while a file is begun. No target is doubted, none counts as lost, and each has what was durable or something later.
func TestPowerCutIsNoDamage(t *testing.T) {
	oneGoroutine(t)
	t.Parallel()
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(43, seed))
		dir := newMemDir()
		ts := registryOf(t, dir, "a", "b", "c")
		durable, moments := map[string]uint64{}, 0
		judge := func(op string) {
			if t.Failed() || op == "write" && !dir.growing && rng.IntN(20) > 0 {
				return
			}
			for _, left := range []*memDir{dir.crash(), dir.cut(rng), dir.cut(rng)} {
				moments++
				got := loadSavepoints(t, left)
				if got.bad > 0 || got.log.Lost {
					t.Errorf("seed %d, %s: %d places count as damaged, lost %+v", seed, op, got.bad, got.log.Lost)
				}
				for name, n := range durable {
					if st := got.byName[name]; st == nil || st.Outcome.Delivered < n {
						t.Errorf("seed %d, %s: %s is %+v, durable was %d", seed, op, name, st, n)
					}
				}
			}
		}
		dir.struck = func(op, _ string) error { judge(op); return nil }
		moves := func() {
			for _, tg := range ts.all() {
				tg.mu.Lock()
				tg.sp.Outcome.Delivered += 1000
				tg.sp.Done = manyRanges(rng.IntN(queue.MaxRanges))
				tg.version++
				tg.mu.Unlock()
				ts.store.Write(tg)
			}
		}
		for i := range 30 {
			moves()
			if i == 15 {
				for n := range 60 { // more than a file of the smallest size has room for
					name := fmt.Sprint("new ", n)
					ts.set(name, newTarget(ts.store, name, queue.Stored{Savepoint: queue.Savepoint{Done: manyRanges(queue.MaxRanges)}}))
				}
			}
			if err := ts.save(); err != nil {
				t.Fatal(err)
			}
			for _, tg := range ts.all() {
				durable[tg.name] = tg.savepoint().Outcome.Delivered
			}
		}
		if dir.struck = nil; dir.entries[savepointNames[0]].data.size <= minSavepointFile {
			t.Fatal("the files have not grown")
		}
		if moments < 200 {
			t.Errorf("only %d cuts", moments)
		}
	}
}

// TestStartOnAState: a start reads a state that a kill has left and no fsync confirmed, or one that is durable but whose later records
// a power cut took. A power cut during that start takes nothing that was durable, because the start makes that state durable before it
// writes to the other file.
func TestStartOnAState(t *testing.T) {
	rng := rand.New(rand.NewPCG(44, 0))
	dir := newMemDir()
	ts := registryOf(t, dir, "a", "b")
	deliver := func(n uint64) {
		for _, tg := range ts.all() {
			tg.mu.Lock()
			tg.sp.Outcome.Delivered = n
			tg.version++
			tg.mu.Unlock()
		}
	}
	type crashed struct {
		left    *memDir
		durable uint64
	}
	var all []crashed
	deliver(7)
	if err := ts.save(); err != nil {
		t.Fatal(err)
	}
	deliver(8)
	dir.struck = func(op, _ string) error {
		if op == "sync" {
			all = append(all, crashed{dir.kill(), 7})
		}
		return nil
	}
	beginOther(t, ts)
	all = append(all, crashed{dir.crash(), 8})
	for i, c := range all {
		cuts := 0
		c.left.struck = func(op, _ string) error {
			for n := 0; n < 20 && !t.Failed(); n++ {
				cuts++
				got := loadSavepoints(t, c.left.cut(rng))
				for _, name := range []string{"a", "b"} {
					if st := got.byName[name]; st == nil || st.Outcome.Delivered < c.durable || got.bad > 0 || got.log.Lost {
						t.Errorf("crash %d of %d, then a power cut in %s: %s is %+v, damaged %d", i, len(all), op, name, st, got.bad)
					}
				}
			}
			return nil
		}
		if err := memTargets(t, c.left, targetsOptions{}).begin(Mark{Commit: 1}); err != nil || cuts == 0 {
			t.Fatalf("%d power cuts: %v", cuts, err)
		}
	}
	if len(all) < 2 {
		t.Error("there was no kill while a file was begun")
	}
}

// TestZeroedState: when a page of the newest state turns to zeros, a target whose newest record was there is as it was before, and the
// damage is counted, also if nothing has changed since the state was written.
func TestZeroedState(t *testing.T) {
	dir := newMemDir()
	ts := registryOf(t, dir, targetNames(40)...)
	for _, tg := range ts.all() {
		raiseHigh(tg, 8)
	}
	beginOther(t, ts)
	if err := ts.save(); err != nil { // of the next second
		t.Fatal(err)
	}
	newest := newestFile(dir)
	for at := 0; at < 40*slotSize; at += 4096 {
		left := dir.crash()
		left.entries[newest].data.edit(func(b []byte) { clear(b[at : at+4096]) })
		got := loadSavepoints(t, left)
		for _, name := range targetNames(40) {
			if st := got.byName[name]; st == nil || st.High.Commit != 8 && got.bad == 0 {
				t.Fatalf("page at %d: %s is %+v", at, name, st)
			}
		}
	}
}

// TestDamagedAgainAfterAStart: a start makes up for damage in both files, so that the next damage costs no more than the first.
func TestDamagedAgainAfterAStart(t *testing.T) {
	dir := newMemDir()
	if err := registryOf(t, dir, "a", "b").save(); err != nil {
		t.Fatal(err)
	}
	spoil := func(d *memDir) {
		hit := 0
		d.entries[newestFile(d)].data.edit(func(b []byte) {
			for at := 0; at+slotSize <= len(b); at += slotSize {
				if ownedBy(b[at:], "a") {
					b[at+slotHead]++
					hit++
				}
			}
		})
		if hit == 0 {
			t.Fatal("nothing was damaged")
		}
	}
	for i := range 3 {
		left := dir.crash()
		spoil(left)
		for name, x := range left.entries {
			left.entries[name] = durableInode(x.data)
		}
		left.durable = maps.Clone(left.entries)
		if got := loadSavepoints(t, left); got.byName["a"] == nil || got.bad == 0 || got.byName["b"] == nil {
			t.Fatalf("damaged for the %d. time: %+v, lost %+v", i+1, got.byName["a"], got.log.Lost)
		}
		ts := memTargets(t, left, targetsOptions{})
		if err := errors.Join(ts.begin(Mark{Commit: 1}), ts.save()); err != nil {
			t.Fatal(err)
		}
		dir = left
	}
}

// A file that is replaced under the agent, by a copy or by something else, or cut short, is written anew as if it had been removed.
func TestSavepointFileReplaced(t *testing.T) {
	for _, file := range savepointNames {
		for _, how := range []string{"copy", "older copy", "empty", "garbage", "the other one", "cut short"} {
			t.Run(file+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					saves := newMemDir()
					var said bytes.Buffer
					o := memOptions(t, newMemDir(), saves)
					o.Logger = slog.New(slog.NewTextHandler(&said, nil))
					l := openLog(t, o)
					defer l.Close()
					r := openReader(t, l, "a", ReaderOptions{})
					work := func(n int) {
						for i := range n {
							if err := commitFloats(l, 3, int64(i), 1); err != nil {
								t.Fatal(err)
							}
							deliver(t, r, 1)
						}
					}
					old := saves.kill().entries[file].data.bytes()
					work(2)
					time.Sleep(1500 * time.Millisecond)
					with := saves.kill().entries[file].data.bytes()
					switch how {
					case "older copy":
						with = old
					case "empty":
						with = nil
					case "garbage":
						with = bytes.Repeat([]byte("garbage."), len(with)/8)
					case "the other one":
						with = saves.kill().entries[savepointNames[1-slices.Index(savepointNames[:], file)]].data.bytes()
					case "cut short":
						f, err := saves.Open(file, os.O_RDWR)
						if err != nil || f.Truncate(0) != nil {
							t.Fatal(err)
						}
					}
					if how != "cut short" {
						saves.mu.Lock()
						saves.entries[file] = fresh(with)
						saves.durable[file] = saves.entries[file]
						saves.mu.Unlock()
					}
					work(1)
					time.Sleep(2500 * time.Millisecond)
					for what, left := range map[string]*memDir{"kill": saves.kill(), "power cut": saves.crash()} {
						s := loadSavepoints(t, left)
						if st := s.byName["a"]; st == nil || st.Outcome.Delivered != 9 || s.log.Lost || s.bad > 0 {
							t.Errorf("after a %s: %+v, lost %+v", what, st, s.log.Lost)
						}
					}
					if !strings.Contains(said.String(), "Another program changed a savepoint file") {
						t.Errorf("nothing was said")
					}
					if err := r.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// TestOutcomesAtAHighRate: many targets whose outcomes fill a file in less than a second leave nothing unwritten: after a kill at any moment
// each has its newest outcome.
func TestOutcomesAtAHighRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := newMemDir()
		o := memOptions(t, nil, nil)
		o.wrap = func(name string, real disk.Directory) disk.Directory {
			_ = real.Close()
			if name == savepointDir {
				return &slowSyncs{Directory: mem, takes: 20 * time.Millisecond}
			}
			return newMemDir()
		}
		l := openLog(t, o)
		var readers []*Reader
		for i := range 10 {
			readers = append(readers, openReader(t, l, fmt.Sprint(i), ReaderOptions{}))
		}
		time.Sleep(100 * time.Millisecond)
		for i := range uint64(400) { // 1,000 outcomes a second
			time.Sleep(10 * time.Millisecond)
			for _, r := range readers {
				r.target.mu.Lock()
				r.target.sp.Outcome.Delivered = i
				r.target.version++
				r.target.mu.Unlock()
				l.targets.store.Write(r.target)
			}
			for name, st := range loadSavepoints(t, mem.kill()).byName {
				if st.Outcome.Delivered != i {
					t.Fatalf("after outcome %d: a kill leaves %d of %s", i, st.Outcome.Delivered, name)
				}
			}
		}
		for _, r := range readers {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		_ = l.Close()
	})
}

// Closing takes a few fsyncs, however many targets there are and whatever changed of each.
func TestCloseSyncsOnce(t *testing.T) {
	for _, n := range []int{1, 47, 1000} {
		synctest.Test(t, func(t *testing.T) {
			o := memOptions(t, nil, nil)
			dirs := map[string]*slowSyncs{}
			o.wrap = func(name string, real disk.Directory) disk.Directory {
				_ = real.Close()
				dirs[name] = &slowSyncs{Directory: newMemDir(), takes: 20 * time.Millisecond}
				return dirs[name]
			}
			l := openLog(t, o)
			var list []Enrolment
			for i := range n {
				list = append(list, Enrolment{Name: fmt.Sprint(i)})
			}
			if err := l.Enroll(list); err != nil {
				t.Fatal(err)
			}
			if err := commitFloats(l, 3, 1, 1); err != nil {
				t.Fatal(err)
			}
			var readers []*Reader
			for _, e := range list {
				r := openReader(t, l, e.Name, ReaderOptions{})
				deliver(t, r, 1)
				readers = append(readers, r)
			}
			time.Sleep(2500 * time.Millisecond)
			for _, r := range readers {
				raiseHigh(r.target, r.Savepoint().High.Commit)
			}
			before := dirs[savepointDir].count() + dirs[segmentDir].count()
			var errs []error
			for _, r := range readers {
				errs = append(errs, r.Close())
			}
			if err := errors.Join(append(errs, l.Close())...); err != nil {
				t.Error(err)
			}
			if took := dirs[savepointDir].count() + dirs[segmentDir].count() - before; took > 3 {
				t.Errorf("%d targets: %d fsyncs to close", n, took)
			}
		})
	}
}

// TestThousandTenants: of a thousand tenants one is held, and all others have everything. Damage to the newest record of any one costs the
// others nothing, and the held one still gets what waits for it.
func TestThousandTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		segments, saves := newMemDir(), newMemDir()
		l := openLog(t, memOptions(t, segments, saves))
		if err := l.Enroll([]Enrolment{{Name: "e", Family: true}}); err != nil {
			t.Fatal(err)
		}
		names := targetNames(1000)
		const held = "e/500"
		readers := map[string]*Reader{}
		for _, name := range names {
			member, _ := queue.MemberOf("e", name)
			if _, err := l.EnrollMember("e", member, l.head()); err != nil {
				t.Fatal(err)
			}
			readers[name] = openReader(t, l, name, ReaderOptions{})
		}
		for i := range 3 {
			if err := commitFloats(l, 3, int64(i), 1); err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if name != held {
					deliver(t, readers[name], 1)
				}
			}
			time.Sleep(1500 * time.Millisecond)
		}
		head := l.head()
		for _, r := range readers {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		newest := newestFile(saves)
		for _, victim := range []string{held, "e/0", "e/998"} {
			left := saves.crash()
			left.entries[newest].data.edit(func(b []byte) { b[newestSlot(b, victim)+slotHead]++ })
			again := openLog(t, memOptions(t, segments.crash(), left))
			if err := again.Enroll([]Enrolment{{Name: "e", Family: true}}); err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				tg := again.targets.get(name)
				if tg == nil {
					t.Fatalf("damage to %s: %s is gone", victim, name)
				}
				sp := tg.savepoint()
				switch {
				case name == victim && sp.High.Commit < head.Commit, name == held && sp.Settled() > 0:
					t.Errorf("damage to %s: it is at %v, and %v may have been sent", victim, sp.Acked(), sp.High)
				case name != victim && name != held && sp.Acked().Commit != head.Commit:
					t.Errorf("damage to %s: %s is at %v", victim, name, sp.Acked())
				case sp.High.Commit < head.Commit:
					t.Errorf("damage to %s: %s is not in doubt", victim, name)
				}
			}
			r := openReader(t, again, held, ReaderOptions{})
			deliver(t, r, 3)
			if g := r.Ledger(); g.Delivered != 9 || g.Pending != 0 {
				t.Errorf("damage to %s: %+v", victim, g)
			}
			if err := errors.Join(r.Close(), again.Close()); err != nil {
				t.Error(err)
			}
		}
	})
}

// How much of the log is durable is written each second, for after a kill. It is synced with the next record of a target only, and
// when the log is closed: on a small agent each fsync costs as much as a round of samples.
func TestLogIsNotedWithOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := newMemDir()
		ts := registryOf(t, dir, "a")
		if err := ts.save(); err != nil {
			t.Fatal(err)
		}
		syncs := 0
		dir.struck = func(op, _ string) error {
			if op == "sync" {
				syncs++
			}
			return nil
		}
		save := func() {
			t.Helper()
			if err := ts.save(); err != nil {
				t.Fatal(err)
			}
		}
		check := func(when string, wantSyncs int, killed, cut uint64) {
			t.Helper()
			afterKill, afterCut := loadSavepoints(t, dir.kill()).log.Durable.Commit, loadSavepoints(t, dir.crash()).log.Durable.Commit
			if syncs != wantSyncs || afterKill != killed || afterCut != cut {
				t.Errorf("%s: %d fsyncs, durable up to commit %d after a kill and %d after a power cut; want %d, %d and %d",
					when, syncs, afterKill, afterCut, wantSyncs, killed, cut)
			}
		}
		ts.store.Learn(Mark{Log: ID{1}, Commit: 1})
		save()
		check("by itself", 0, 1, 0)
		time.Sleep(time.Minute)
		save()
		check("long after", 0, 1, 0)
		ts.store.Learn(Mark{Log: ID{1}, Commit: 2})
		ts.all()[0].replace(queue.Savepoint{})
		ts.store.Write(ts.all()[0])
		save()
		check("with a target's record", 1, 2, 2)
		ts.store.Learn(Mark{Log: ID{1}, Commit: 3})
		if err := ts.close(); err != nil {
			t.Fatal(err)
		}
		check("at the end", 2, 3, 3)
	})
}
