package wal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hwsagent/wal/internal/disk"
	"hwsagent/wal/queue"
)

// Whichever operation fails, once or from then on, and however much of a write reached the disk: after a
// kill there is what was written last or something later, after a power cut what was reported durable or something later.
func TestSavepointFaults(t *testing.T) {
	oneGoroutine(t)
	t.Parallel()
	for _, lasting := range []int{0, 2, 1000} {
		fired := true
		for at := 1; fired; at += 1 + 2*min(lasting, 2) {
			rng := rand.New(rand.NewPCG(34, uint64(at)))
			dir := newMemDir()
			dir.chance = rng
			ts := memTargets(t, dir, targetsOptions{})
			tg := newTarget(ts.store, "a", queue.Stored{})
			ts.set("a", tg)
			if err := ts.begin(Mark{Commit: 1}); err != nil {
				t.Fatal(err)
			}
			op := 0
			dir.fault = func(string) (int, error) {
				if op++; op >= at && op <= at+lasting {
					return rng.IntN(1000), errDisk
				}
				return 0, nil
			}
			durable, n := uint64(0), uint64(0)
			for range 50 {
				n++
				tg.mu.Lock()
				tg.sp.Outcome.Delivered = n
				tg.sp.Done = manyRanges(queue.MaxRanges)
				tg.version++
				tg.mu.Unlock()
				if rng.IntN(3) > 0 {
					ts.store.Write(tg) // as an acknowledgement is
				} else if tg.save() == nil {
					durable = n
				}
				lefts := map[string]*memDir{"power cut": dir.cut(rng)}
				if n%4 == 0 {
					lefts["kill"] = dir.kill()
				}
				for what, left := range lefts {
					got := loadSavepoints(t, left).byName["a"]
					if got == nil || got.Outcome.Delivered < durable || got.Outcome.Delivered > n {
						t.Fatalf("fault at %d for %d, after a %s: %+v, durable %d of %d", at, lasting, what, got, durable, n)
					}
				}
			}
			if fired = op >= at; fired && at > 40 && lasting == 0 && durable == 0 {
				t.Fatalf("fault at %d: nothing was durable", at)
			}
			dir.fault = nil
			if err := tg.save(); err != nil || loadSavepoints(t, dir.crash()).byName["a"].Outcome.Delivered != n {
				t.Fatalf("fault at %d for %d: not durable on a disk that is well: %v", at, lasting, err)
			}
		}
	}
}

// A crash while the files are made leaves nothing, or everything, and no target is taken for lost because of it.
func TestSavepointCreationCrashes(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 0))
	dir := newMemDir()
	var lefts []*memDir
	dir.struck = func(string, string) error {
		lefts = append(lefts, dir.kill(), dir.crash(), dir.cut(rng))
		return nil
	}
	ts := memTargets(t, dir, targetsOptions{})
	if err := ts.begin(Mark{}); err != nil {
		t.Fatal(err)
	}
	dir.struck = nil
	for i, left := range lefts {
		again := memTargets(t, left, targetsOptions{})
		if err := again.begin(Mark{}); err != nil {
			t.Fatal(err)
		}
		if len(again.byName) != 0 || again.store.IsLost() || again.waiting {
			t.Errorf("crash %d: %v", i, again.byName)
		}
		if s := loadSavepoints(t, left.crash()); s.bad > 0 {
			t.Errorf("crash %d: the next process leaves %+v", i, s)
		}
	}
	if len(lefts) < 20 {
		t.Errorf("only %d crashes", len(lefts))
	}
}

// slowSyncs is a directory whose fsyncs take their time, and are counted.
type slowSyncs struct {
	disk.Directory
	takes time.Duration
	mu    sync.Mutex
	syncs []beganSync
}

// beganSync is the beginning of one fsync.
type beganSync struct {
	at   time.Time
	file string // "" is the directory
}

func (d *slowSyncs) note(name string) {
	d.mu.Lock()
	d.syncs = append(d.syncs, beganSync{time.Now(), name})
	d.mu.Unlock()
	time.Sleep(d.takes)
}

// since is which fsyncs began at that time or later.
func (d *slowSyncs) since(t time.Time) []beganSync {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.syncs), func(s beganSync) bool { return s.at.Before(t) })
}

func (d *slowSyncs) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.syncs)
}

// last is the file that was synced last.
func (d *slowSyncs) last() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncs[len(d.syncs)-1].file
}

func (d *slowSyncs) Look(name string, f disk.File) (disk.Info, error) {
	if slow, ok := f.(slowFile); ok {
		f = slow.File
	}
	return d.Directory.Look(name, f)
}

func (d *slowSyncs) Open(name string, flag int) (disk.File, error) {
	f, err := d.Directory.Open(name, flag)
	return slowFile{f, d, name}, err
}

func (d *slowSyncs) Sync() error {
	d.note("")
	return d.Directory.Sync()
}

type slowFile struct {
	disk.File
	d    *slowSyncs
	name string
}

func (f slowFile) Sync() error {
	f.d.note(f.name)
	return f.File.Sync()
}

// TestSavepointSyncsAreShared: with 100 targets, 99 of them down, on a disk whose fsync takes 20 ms there are in no second more than
// two fsyncs beside that of a reservation, also when a file is begun; no commit waits, and the housekeeping keeps its pace.
func TestSavepointSyncsAreShared(t *testing.T) {
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
		for i := range 100 {
			list = append(list, Enrolment{Name: fmt.Sprintf("target %03d", i)})
		}
		before := dirs[savepointDir].count()
		if err := l.Enroll(list); err != nil {
			t.Fatal(err)
		}
		if n := dirs[savepointDir].count() - before; n > 5 {
			t.Errorf("enrolling 100 targets took %d fsyncs", n)
		}
		var readers []*Reader
		before = dirs[savepointDir].count()
		for _, e := range list {
			readers = append(readers, openReader(t, l, e.Name, ReaderOptions{}))
		}
		if n := dirs[savepointDir].count() - before; n > 0 {
			t.Errorf("opening 100 targets took %d fsyncs", n)
		}
		if err := commitFloats(l, 10, -1, 1); err != nil { // the first fsync of a segment is followed by one of the directory
			t.Fatal(err)
		}
		mustNext(t, readers[0])
		time.Sleep(2500 * time.Millisecond)
		const seconds = 120
		latest := time.Duration(0)
		start := time.Now()
		for i := range seconds * 10 {
			time.Sleep(time.Until(start.Add(time.Duration(i) * 100 * time.Millisecond)))
			now := time.Now()
			if err := commitFloats(l, 10, int64(i), 1); err != nil {
				t.Fatal(err)
			}
			latest = max(latest, time.Since(now), now.Sub(start)-time.Duration(i)*100*time.Millisecond)
			e := mustNext(t, readers[0]) // one is up
			if i%10 == 0 {
				if err := readers[0].Reserve(e.End); err != nil {
					t.Fatal(err)
				}
			}
			readers[0].Advance(e.End, queue.Outcome{Delivered: e.Count()})
		}
		begun := slices.Concat(dirs[savepointDir].since(start), dirs[segmentDir].since(start))
		slices.SortFunc(begun, func(a, b beganSync) int { return a.at.Compare(b.at) })
		n, turns := len(begun), 0
		for i := range begun {
			if i >= 3 && begun[i].at.Sub(begun[i-3].at) < time.Second {
				t.Errorf("four fsyncs within a second: %v", begun[i-3:i+1])
			}
		}
		for i, saves := 1, dirs[savepointDir].since(start); i < len(saves); i++ {
			if saves[i].file != saves[i-1].file {
				turns++
			}
		}
		t.Logf("%d fsyncs in %d s, with %d turns of the files; the slowest commit took %s", n, seconds, turns, latest)
		if n > 2*seconds {
			t.Errorf("%d fsyncs in %d s", n, seconds)
		}
		if turns < 3 {
			t.Errorf("only %d files were begun meanwhile", turns)
		}
		if latest > 25*time.Millisecond {
			t.Errorf("a commit took %s", latest)
		}
		_ = l.Close()
	})
}

// Reservations take no fsync, one a second makes them durable together, and a target that does nothing costs nothing.
func TestReservationsTakeNoFsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := &slowSyncs{Directory: newMemDir(), takes: 20 * time.Millisecond}
		ts, err := openTargets(dir, targetsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p := newPlan(2, 6, 5)
		l := p.log()
		if err := ts.enroll(l, []Enrolment{{Name: "idle"}}); err != nil {
			t.Fatal(err)
		}
		var readers []*Reader
		for i := range 100 {
			readers = append(readers, openTestReader(t, ts, l, fmt.Sprint(i), ReaderOptions{StartAt: StartOldest}))
		}
		ts.store.Renew() // so that the files have grown to what 100 targets need
		if err := ts.save(); err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			before, began := dir.count(), time.Now()
			var all sync.WaitGroup
			for _, r := range readers {
				all.Go(func() {
					if err := r.Reserve(p.commits[round].mark); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if n, took := dir.count()-before, time.Since(began); n > 0 || took > 0 {
				t.Errorf("100 reservations took %d fsyncs and %s", n, took)
			}
			if err := ts.save(); err != nil || dir.count()-before != 1 {
				t.Errorf("saved with %d fsyncs: %v", dir.count()-before, err)
			}
		}
		before := dir.count()
		for range 100 {
			time.Sleep(time.Second)
			if err := ts.save(); err != nil {
				t.Fatal(err)
			}
		}
		if n := dir.count() - before; n > 1 {
			t.Errorf("%d fsyncs while nothing happened", n)
		}
		if err := ts.close(); err != nil {
			t.Error(err)
		}
	})
}

// What is acknowledged while an fsync hangs, or while a file is begun, is in a file at once: a kill costs nothing.
func TestWrittenWhileTheDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := newMemDir()
		dir := &slowSyncs{Directory: mem}
		ts, err := openTargets(dir, targetsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l := newPlan(1, 2, 5).log()
		if err := ts.begin(l.head()); err != nil {
			t.Fatal(err)
		}
		r := openTestReader(t, ts, l, "a", ReaderOptions{StartAt: StartOldest})
		dir.takes = 5 * time.Second
		files := map[string]bool{}
		for i := range uint64(600) {
			r.target.mu.Lock()
			r.target.sp.Outcome.Delivered = i
			r.target.version++
			r.target.mu.Unlock()
			began := time.Now()
			ts.store.Write(r.target)
			if took := time.Since(began); took > 0 {
				t.Fatalf("writing took %s", took)
			}
			if i%20 == 0 {
				go func() { _ = ts.save() }()
				time.Sleep(time.Second)
				files[dir.last()] = true
			}
			if got := loadSavepoints(t, mem.kill()).byName["a"]; got == nil || got.Outcome.Delivered != i {
				t.Fatalf("after a kill at %d: %+v", i, got)
			}
		}
		time.Sleep(time.Minute)
		if len(files) != 2 {
			t.Errorf("no file was begun meanwhile: %v", files)
		}
		if err := ts.close(); err != nil {
			t.Error(err)
		}
	})
}

// TestSavepointFileRemoved: a file that is removed under the agent is written anew within a second, loudly, and what was in it is
// there after a kill and a power cut.
func TestSavepointFileRemoved(t *testing.T) {
	for _, gone := range [][]string{{savepointNames[0]}, {savepointNames[1]}, savepointNames[:]} {
		synctest.Test(t, func(t *testing.T) {
			saves := newMemDir()
			var said bytes.Buffer
			o := memOptions(t, newMemDir(), saves)
			o.Logger = slog.New(slog.NewTextHandler(&said, nil))
			l := openLog(t, o)
			defer l.Close()
			r := openReader(t, l, "a", ReaderOptions{})
			for i := range 4 {
				if err := commitFloats(l, 3, int64(i), 1); err != nil {
					t.Fatal(err)
				}
			}
			deliver(t, r, 2)
			time.Sleep(1500 * time.Millisecond)
			for _, name := range gone {
				if err := saves.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
			deliver(t, r, 1)
			time.Sleep(1500 * time.Millisecond)
			for what, left := range map[string]*memDir{"kill": saves.kill(), "power cut": saves.crash()} {
				s := loadSavepoints(t, left)
				if st := s.byName["a"]; st == nil || st.Outcome.Delivered != 9 || s.log.Lost || left.files() != 2 {
					t.Errorf("%q removed, after a %s: %+v, lost %+v, %d files", gone, what, st, s.log.Lost, left.files())
				}
			}
			if n := strings.Count(said.String(), "change=removed"); n != len(gone) {
				t.Errorf("%q removed, and it was said %d times: %s", gone, n, said.String())
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Savepoints go on when not a byte more can be written to the disk, for as long as there are no more targets than before.
func TestSavepointsOnAFullDisk(t *testing.T) {
	dir := newMemDir()
	ts := memTargets(t, dir, targetsOptions{})
	l := newPlan(1, 2, 5).log()
	var list []Enrolment
	for i := range 300 {
		list = append(list, Enrolment{Name: fmt.Sprint(i)})
	}
	if err := ts.enroll(l, list); err != nil {
		t.Fatal(err)
	}
	refused := 0
	dir.fault = func(op string) (int, error) {
		if op == "write" && dir.growing || op == "create" {
			refused++
			return 0, syscall.ENOSPC
		}
		return 0, nil
	}
	for round := range 20 {
		for _, tg := range ts.all() {
			raiseHigh(tg, uint64(round)+1)
		}
		if err := ts.save(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	if s := loadSavepoints(t, dir.crash()); len(s.byName) != 300 || s.byName["7"].High.Commit != 20 {
		t.Errorf("%d targets, %+v", len(s.byName), s.byName["7"])
	}
	for i := range 5000 {
		list = append(list, Enrolment{Name: fmt.Sprint("more ", i)})
	}
	if err := ts.enroll(l, list); !errors.Is(err, syscall.ENOSPC) || refused == 0 {
		t.Errorf("5,000 more targets: %v", err)
	}
	if err := ts.save(); err != nil {
		t.Errorf("after that: %v", err)
	}
	if s := loadSavepoints(t, dir.crash()); len(s.byName) != 300 || s.bad > 0 {
		t.Errorf("after that: %d targets, %d damaged", len(s.byName), s.bad)
	}
	dir.fault = nil
	if err := ts.enroll(l, list); err != nil || len(loadSavepoints(t, dir.crash()).byName) != 5300 {
		t.Errorf("with space again: %v", err)
	}
}

// raiseHigh changes the savepoint of a target without writing it.
func raiseHigh(tg *target, commit uint64) {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	tg.sp.High.Commit = commit
	tg.version++
}

// manyRanges makes a savepoint of many bytes.
func manyRanges(n int) (all []queue.Range) {
	mark := func(n int) Mark {
		return Mark{Position: Position{Segment: n, Offset: 1 << 40}, Log: ID{1, 2, 3}, SegmentID: ID{4, 5, byte(n)}, Commit: uint64(n), Total: uint64(n)}
	}
	for i := range n {
		all = append(all, queue.Range{From: mark(3 * i), To: mark(3*i + 1), High: mark(3*i + 2)})
	}
	return all
}

// Savepoints of the earlier format are refused, and stay as they are.
func TestEarlierFormatIsRefused(t *testing.T) {
	for _, name := range savepointNames {
		dir := filepath.Join(t.TempDir(), "log")
		l := openLog(t, Options{Dir: dir})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, savepointDir, name), earlierSlot(), 0o600); err != nil {
			t.Fatal(err)
		}
		read := func() map[string][]byte {
			files := map[string][]byte{}
			for _, inner := range []string{segmentDir, savepointDir} {
				list, err := os.ReadDir(filepath.Join(dir, inner))
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range list {
					if files[e.Name()], err = os.ReadFile(filepath.Join(dir, inner, e.Name())); err != nil {
						t.Fatal(err)
					}
				}
			}
			return files
		}
		before := read()
		_, err := Open(Options{Dir: dir})
		for _, says := range []string{name, "earlier format", "nothing was changed", "until no target has anything pending", "another --storage.path"} {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, which does not say %q", err, says)
			}
		}
		if in, err := Inspect(dir); err != nil || !strings.Contains(in.Problem, "earlier format") {
			t.Errorf("inspected: %q, %v", in.Problem, err)
		}
		if diff := cmp.Diff(before, read()); diff != "" {
			t.Error(diff)
		}
	}
}

// A page of the savepoints that the disk refuses to read is damage like any other, for a moment it is none.
func TestSavepointPageUnreadable(t *testing.T) {
	for _, lasts := range []int{1, 1000} {
		synctest.Test(t, func(t *testing.T) {
			segments, saves := newMemDir(), newMemDir()
			l := openLog(t, memOptions(t, segments, saves))
			r := openReader(t, l, "a", ReaderOptions{})
			if err := commitFloats(l, 3, 1, 1); err != nil {
				t.Fatal(err)
			}
			deliver(t, r, 1)
			if err := errors.Join(r.Close(), l.Close()); err != nil {
				t.Fatal(err)
			}
			newest := newestFile(saves)
			fired := 0
			saves.unreadable = func(name string, off int64) error {
				if name == newest && off == 0 && fired < lasts {
					fired++
					return errDisk
				}
				return nil
			}
			l = openLog(t, memOptions(t, segments, saves))
			defer l.Close()
			again := openReader(t, l, "a", ReaderOptions{})
			sp := again.Savepoint()
			if forMoment := lasts == 1; fired == 0 || (sp.Outcome.Delivered == 3) != forMoment || sp.High != l.head() || l.targets.store.IsLost() == forMoment {
				t.Errorf("refused %d times: %+v", fired, sp)
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A closed registry says so, and a file that cannot be looked at is an error.
func TestSavepointStoreErrors(t *testing.T) {
	var refuses error
	ts, err := openTargets(brokenDir{newMemDir(), func(op string) error {
		if strings.HasPrefix(op, "look") {
			return refuses
		}
		return nil
	}}, targetsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := newPlan(1, 2, 3).log()
	r := openTestReader(t, ts, l, "a", ReaderOptions{})
	refuses = errDisk
	if err := ts.enroll(l, nil); !errors.Is(err, errDisk) {
		t.Errorf("enrolled: %v", err)
	}
	refuses = nil
	if err := ts.close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Reserve(Mark{Commit: 99}); !errors.Is(err, ErrClosed) {
		t.Errorf("reserved: %v", err)
	}
}

// contentsOf are copies of the files of a directory.
func contentsOf(d *memDir) map[string][]byte {
	files := map[string][]byte{}
	for name, i := range d.entries {
		files[name] = i.data.bytes()
	}
	return files
}

// A newer format is refused by name, wherever a record of it is, and nothing is changed.
func TestNewerSavepointsAreRefused(t *testing.T) {
	dir := newMemDir()
	ts := memTargets(t, dir, targetsOptions{})
	openTestReader(t, ts, newPlan(1, 2, 3).log(), "a", ReaderOptions{})
	for _, name := range savepointNames {
		for at := range 2 {
			left := dir.kill()
			left.entries[name].data.edit(func(b []byte) {
				setFormat(b[at*slotSize:], 1)
			})
			before := contentsOf(left)
			_, err := openTargets(left, targetsOptions{})
			if err == nil || !strings.Contains(err.Error(), "newer hwsagent") || !strings.Contains(err.Error(), name) {
				t.Errorf("%s, slot %d: %v", name, at, err)
			}
			if !maps.EqualFunc(before, contentsOf(left), slices.Equal) {
				t.Errorf("%s, slot %d: something was changed", name, at)
			}
		}
	}
}

// What keeps a new target from being made, in whichever way, is an error, and the target is not there afterwards; on a disk that is well it
// can be made.
func TestNewTargetRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		saves := newMemDir()
		l := openLog(t, memOptions(t, newMemDir(), saves))
		defer l.Close()
		family := []Enrolment{{Name: "e", Family: true}}
		if err := l.Enroll(family); err != nil {
			t.Fatal(err)
		}
		long := strings.Repeat("x", queue.MaxNameBytes+1)
		ways := map[string]func(name string) error{
			"reader": func(name string) error {
				r, err := l.Reader(name, ReaderOptions{})
				if err == nil {
					err = r.Close()
				}
				return err
			},
			"enrol":  func(name string) error { return l.Enroll(append(slices.Clone(family), Enrolment{Name: name})) },
			"member": func(name string) error { _, err := l.EnrollMember("e", name, l.head()); return err },
		}
		for way, create := range ways {
			if err := create(long); err == nil || !strings.Contains(err.Error(), "too long") {
				t.Errorf("%s, a name that is too long: %v", way, err)
			}
			failing(saves, "write", "sync")
			if err := create("new " + way); !errors.Is(err, syscall.EIO) {
				t.Errorf("%s, the disk refuses: %v", way, err)
			}
			saves.fault = nil
			if err := l.targets.save(); err != nil {
				t.Error(err)
			}
			if got := savedIn(t, saves.crash()); slices.ContainsFunc(got, func(name string) bool { return strings.HasSuffix(name, "new "+way) }) {
				t.Errorf("%s: refused, and there is %q", way, got)
			}
			if err := create("new " + way); err != nil {
				t.Errorf("%s, the disk is well: %v", way, err)
			}
		}
	})
}
