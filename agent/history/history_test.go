package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func at(minute int) time.Time { return noon.Add(time.Duration(minute) * Every) }

func opened(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func add(t *testing.T, s *Store, target string, minutes ...int) {
	t.Helper()
	for _, m := range minutes {
		s.Add(target, Point{Time: at(m).Add(30 * time.Second), In: float64(m), Out: 0.5, Lag: 2, Backlog: 1 << 30})
	}
	if err := s.Write(); err != nil {
		t.Fatal(err)
	}
}

// minutes returns those of the points.
func minutes(points []Point) (all []int) {
	for _, p := range points {
		all = append(all, int(p.In))
	}
	return all
}

// TestSurvivesARestart: added points are there again, in order, for a day; a file does not grow, and only its owner can
// read it.
func TestSurvivesARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "history")
	s := opened(t, dir)
	names := []string{"mimir", "con", "../../etc/passwd", "a/b ü" + string(make([]byte, 300))}
	for _, name := range names {
		add(t, s, name, 0, 1, 2, 5)
	}
	again := opened(t, dir)
	for _, name := range names {
		want := []Point{{at(0), 0, 0.5, 2, 1 << 30}, {at(1), 1, 0.5, 2, 1 << 30}, {at(2), 2, 0.5, 2, 1 << 30}, {at(5), 5, 0.5, 2, 1 << 30}}
		if diff := cmp.Diff(want, again.Points(name, at(5))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", name, diff)
		}
	}
	for m := range 3 * slots {
		add(t, again, "mimir", m)
	}
	got := minutes(again.Points("mimir", at(3*slots-1)))
	if len(got) != slots || got[0] != 2*slots || got[slots-1] != 3*slots-1 {
		t.Errorf("after three days %d points", len(got))
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(names) {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Size() > int64(FileSize) || FileSize > 64<<10 || info.Mode().Perm() != 0o600 {
			t.Errorf("the file %v, %v", info, err)
		}
	}
	if got := again.Points("mimir", at(3*slots+100)); len(got) != slots-101 {
		t.Errorf("100 minutes later %d points", len(got))
	}
	if again.Points("none", noon) != nil {
		t.Error("an unknown target has points")
	}
}

// TestDamage: whatever becomes of a file, it costs the points that it meets, and the next ones are kept.
func TestDamage(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	for i := range 200 {
		dir := t.TempDir()
		s := opened(t, dir)
		for m := range 60 {
			add(t, s, "t", m)
		}
		path := filepath.Join(dir, nameOf("t"))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		broken := map[int]bool{} // slots
		what := ""
		switch r.IntN(3) {
		case 0:
			n := r.IntN(len(text))
			what = fmt.Sprintf("cut to %d", n)
			text = text[:n]
			for k := n / slotSize; k < slots; k++ {
				broken[k] = true
			}
		case 1:
			for range 1 + r.IntN(5) {
				k := r.IntN(len(text))
				text[k] ^= 1 << r.IntN(8)
				broken[k/slotSize] = true
			}
			what = "bits"
		case 2: // a slot in the place of another one
			from, to := r.IntN(len(text)/slotSize), r.IntN(len(text)/slotSize)
			copy(text[to*slotSize:(to+1)*slotSize], text[from*slotSize:(from+1)*slotSize])
			if from != to {
				broken[to] = true
			}
			what = "moved"
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s = opened(t, dir)
		want := []int{}
		for m := range 60 {
			if !broken[place(at(m).Unix()/60)] {
				want = append(want, m)
			}
		}
		got := append([]int{}, minutes(s.Points("t", at(60)))...)
		if diff := cmp.Diff(want, got); diff != "" {
			// A bit that was turned twice is whole.
			if what != "bits" || len(got) < len(want) {
				t.Fatalf("round %d, %s (-want +got):\n%s", i, what, diff)
			}
		}
		add(t, s, "t", 61)
		if got := minutes(opened(t, dir).Points("t", at(61))); got[len(got)-1] != 61 {
			t.Fatalf("round %d: the next point is not kept", i)
		}
	}
}

// TestClockSetBack: points of the future are not shown, and make room.
func TestClockSetBack(t *testing.T) {
	s := opened(t, t.TempDir())
	add(t, s, "t", 100, 101)
	add(t, s, "t", 7, 8)
	if got := minutes(s.Points("t", at(8))); !cmp.Equal(got, []int{7, 8}) {
		t.Errorf("points %v", got)
	}
	s.Add("t", Point{Time: time.Unix(10, 0), In: 9})
	if err := s.Write(); err != nil || len(s.Points("t", time.Unix(20, 0))) > 0 {
		t.Errorf("a clock that is not set: %v, %v", err, s.Points("t", time.Unix(20, 0)))
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	add(t, s, "old", 0)
	add(t, s, "new", 2000)
	if err := os.WriteFile(filepath.Join(dir, "other"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Prune(at(2000)); err != nil {
		t.Fatal(err)
	}
	again := opened(t, dir)
	if again.Points("old", at(0)) != nil || len(again.Points("new", at(2000))) != 1 {
		t.Error("the wrong one is gone")
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); err != nil {
		t.Error("a file of somebody else is gone")
	}
}

// TestDiskFails: without a disk the points are remembered, and the error says so; a symbolic link is not followed.
func TestDiskFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(file)
	if err == nil {
		t.Error("a file is no directory")
	}
	s.Add("t", Point{Time: noon, In: 3})
	if err := s.Write(); err == nil || len(s.Points("t", noon)) != 1 {
		t.Errorf("the error is %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(); err != nil || len(opened(t, file).Points("t", noon)) != 1 {
		t.Errorf("with the disk again: %v, %v", err, opened(t, file).Points("t", noon))
	}
	if err := os.WriteFile(file+"2", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	file += "2"
	dir := t.TempDir()
	if err := os.Symlink(file, filepath.Join(dir, nameOf("t"))); err != nil {
		t.Skip(err)
	}
	s, err = Open(dir)
	if err == nil {
		t.Error("a symbolic link was read")
	}
	s.Add("t", Point{Time: noon})
	if err := s.Write(); err == nil {
		t.Error("a symbolic link was written")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "x" {
		t.Errorf("the link's file has %q, %v", text, err)
	}
}

// TestWritesEachTenMinutes: a minute's point costs no write, a kill takes those of ten minutes at most, and after an
// error the next minute tries again.
func TestWritesEachTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "history")
		s := opened(t, dir)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		fails := 0
		go func() {
			defer close(ended)
			s.Run(ctx, func() map[string]Point { return map[string]Point{"t": {Time: time.Now(), In: 1}} }, func(err error) {
				if err != nil {
					fails++
				}
			})
		}()
		onDisk := func(after time.Duration) int {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			return len(opened(t, dir).Points("t", time.Now()))
		}
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{9*time.Minute + time.Second, 0}, {time.Minute, 10}, {9 * time.Minute, 10}, {time.Minute, 20}} {
			if got := onDisk(step.after); got != step.want {
				t.Errorf("%s later %d points are in the file, want %d", step.after, got, step.want)
			}
		}
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * time.Minute)
		synctest.Wait()
		if fails != 3 || len(s.Points("t", time.Now())) != 32 {
			t.Errorf("without a disk %d errors, %d points", fails, len(s.Points("t", time.Now())))
		}
		if err := errors.Join(os.Remove(dir), os.Rename(dir+".away", dir)); err != nil {
			t.Fatal(err)
		}
		if got := onDisk(time.Minute); got != 33 {
			t.Errorf("with the disk again %d points are in the file, want 33", got)
		}
		if got := onDisk(4 * time.Minute); got != 33 {
			t.Errorf("four minutes later %d points are in the file, want 33", got)
		}
		end()
		<-ended
		if err := s.Write(); err != nil || onDisk(0) != 37 {
			t.Errorf("at a stop: %v, %d points", err, onDisk(0))
		}
	})
}
