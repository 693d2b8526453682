package wal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func randomMark(rng *rand.Rand, after Mark) Mark {
	m := Mark{
		Position: Position{after.Segment + rng.IntN(3), rng.Int64N(1 << 30)},
		Log:      ID{1}, SegmentID: ID{2, byte(rng.Uint32())},
		Commit: after.Commit + 1 + rng.Uint64N(1000),
	}
	m.Total = after.Total + rng.Uint64N(1<<30)
	return m
}

func randomSavepoint(rng *rand.Rand, ranges int) storedSavepoint {
	st := storedSavepoint{Name: "prod/eu", LastOpen: rng.Int64()}
	st.Start = randomMark(rng, Mark{})
	at := st.Start
	for range ranges {
		if n := len(st.Done); n > 0 {
			st.Done[n-1].High, st.Done[n-1].Shards = at, rng.IntN(16)
		}
		r := Range{From: at, To: randomMark(rng, at)}
		st.Done = append(st.Done, r)
		at = randomMark(rng, r.To)
	}
	st.High = at
	st.Outcome.Delivered, st.Outcome.Filtered = rng.Uint64N(1<<40), rng.Uint64N(1<<40)
	for i := range st.Outcome.Dropped {
		st.Outcome.Dropped[i] = rng.Uint64N(1 << 20)
	}
	if ranges%2 == 1 {
		st.Orphan = rng.Int64N(1 << 40)
	}
	return st
}

func TestSavepointSlotRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 0))
	for ranges := range 70 {
		want := randomSavepoint(rng, ranges)
		b, err := appendSlot(nil, 42, want)
		if err != nil {
			t.Fatalf("%d ranges: %v", ranges, err)
		}
		seq, got, err := decodeSlot(append(b, make([]byte, slotSize-len(b))...))
		if err != nil || seq != 42 {
			t.Fatal(seq, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
	if _, err := appendSlot(nil, 1, randomSavepoint(rng, 1000)); !errors.Is(err, errSavepointTooLong) {
		t.Errorf("1000 ranges: %v", err)
	}
}

// Whatever byte of the file is damaged, what is read is the newest savepoint, or the
// one before with doubt; with both slots damaged it is nothing, and says so.
func TestSavepointDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(32, 0))
	dir := newMemDir()
	older, newer := randomSavepoint(rng, 1), randomSavepoint(rng, 2)
	s, err := createSavepointFile(dir, older)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.write(newer); err != nil {
		t.Fatal(err)
	}
	name := s.name
	whole := bytes.Clone(dir.entries[name].data)
	if len(whole) < slotSize {
		t.Fatalf("file has %d bytes", len(whole))
	}
	load := func(b []byte) (storedSavepoint, bool, error) {
		dir.entries[name].data = b
		s, st, doubt, err := openSavepointFile(dir, name)
		if s != nil {
			defer s.close()
		}
		return st, doubt, err
	}
	fellBack := 0
	for i := 0; i < len(whole); i++ {
		if i%slotSize > 600 {
			i += 500 // the slots' unused part
		}
		i = min(i, len(whole)-1)
		b := bytes.Clone(whole)
		b[i] ^= 1 << rng.IntN(8)
		st, doubt, err := load(b)
		if err != nil {
			t.Fatalf("byte %d: %v", i, err)
		}
		switch {
		case cmp.Equal(st, newer):
		case cmp.Equal(st, older) && doubt:
			fellBack++
		default:
			t.Fatalf("byte %d: a savepoint that was never written, or no doubt", i)
		}
	}
	if fellBack == 0 {
		t.Error("no damage hit the newer slot")
	}
	for size := 0; size < len(whole); size++ {
		if size%slotSize > 600 {
			size = min(size+500, len(whole)-1)
		}
		st, _, err := load(bytes.Clone(whole[:size]))
		if size < slotHeaderSize && !errors.Is(err, errSavepointDamaged) {
			t.Fatalf("cut at %d: %v", size, err)
		}
		if err == nil && !cmp.Equal(st, older) && !cmp.Equal(st, newer) {
			t.Fatalf("cut at %d: a savepoint that was never written", size)
		}
	}
	for _, b := range [][]byte{nil, make([]byte, 2*slotSize), bytes.Repeat([]byte("garbage "), slotSize/4)} {
		if _, doubt, err := load(b); !errors.Is(err, errSavepointDamaged) || !doubt {
			t.Errorf("garbage: %v, doubt %v", err, doubt)
		}
	}
}

// A savepoint of a newer build is refused, not overwritten.
func TestSavepointOfNewerVersion(t *testing.T) {
	dir := newMemDir()
	s, err := createSavepointFile(dir, randomSavepoint(rand.New(rand.NewPCG(33, 0)), 1))
	if err != nil {
		t.Fatal(err)
	}
	b := dir.entries[s.name].data
	b[4] = savepointVersion + 1
	n := slotHeaderSize + int(uint32(b[15])<<8|uint32(b[16]))
	fixChecksum(b, n)
	_, err = openTargets(dir, targetsOptions{})
	if err == nil || !strings.Contains(err.Error(), "newer hwsagent") {
		t.Errorf("got %v", err)
	}
}

// Whichever operation fails, and however much of a write reached the disk, after a
// power cut there is the last savepoint that was reported durable, or one that was
// tried after it.
func TestSavepointFaults(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		for at := range 40 {
			rng := rand.New(rand.NewPCG(34, uint64(at)))
			dir := newMemDir()
			first := randomSavepoint(rng, 1)
			s, err := createSavepointFile(dir, first)
			if err != nil {
				t.Fatal(err)
			}
			op, fired := 0, 0
			dir.fault = func(string) (int, error) {
				op++
				if op-1 == at || sticky && op-1 > at {
					fired++
					return rng.IntN(300), errDisk
				}
				return 0, nil
			}
			durable, tried := []storedSavepoint{first}, []storedSavepoint{}
			for range 25 {
				st := randomSavepoint(rng, rng.IntN(4))
				if err := s.write(st); err != nil {
					tried = append(tried, st)
				} else {
					durable, tried = []storedSavepoint{st}, nil
				}
				// What was written and not synced may be on the disk or not.
				for _, after := range []*memDir{dir.crash(), dir.kill()} {
					f, got, _, err := openSavepointFile(after, s.name)
					if err != nil {
						t.Fatalf("fault at %d: %v", at, err)
					}
					f.close()
					if !slices.ContainsFunc(append(durable, tried...), func(want storedSavepoint) bool { return cmp.Equal(want, got) }) {
						t.Fatalf("fault at %d: neither the durable savepoint nor a later one", at)
					}
				}
			}
			if fired == 0 {
				t.Fatalf("fault at %d did not fire", at)
			}
			s.close()
		}
	}
}

// A crash while a target is created leaves either nothing or its savepoint.
func TestSavepointCreationFaults(t *testing.T) {
	made := false
	for at := 0; !made; at++ {
		dir := newMemDir()
		op := 0
		dir.fault = func(string) (int, error) {
			if op++; op-1 >= at {
				return 7, errDisk
			}
			return 0, nil
		}
		want := randomSavepoint(rand.New(rand.NewPCG(35, 0)), 1)
		_, err := createSavepointFile(dir, want)
		made = err == nil
		after := dir.crash()
		ts, err := openTargets(after, targetsOptions{})
		if err != nil {
			t.Fatalf("fault at %d: %v", at, err)
		}
		if n := len(ts.byName); made && n != 1 {
			t.Fatalf("fault at %d: created, and gone after the crash", at)
		}
		for _, tg := range ts.byName {
			if sp := tg.savepoint(); !cmp.Equal(sp, want.Savepoint) {
				t.Fatalf("fault at %d: half a savepoint", at)
			}
		}
		if err := ts.close(); err != nil {
			t.Fatal(err)
		}
		if at > 50 {
			t.Fatal("never created")
		}
	}
}

func TestEscapeName(t *testing.T) {
	for name, want := range map[string]string{
		"prod":                    "prod",
		"Prod":                    "%50rod",
		"a.b/c d":                 "a%2eb%2fc%20d",
		"..":                      "%2e%2e",
		".creating-x":             "%2ecreating-x",
		"grafana.net_api_v1_push": "grafana%2enet_api_v1_push",
		"100%":                    "100%25",
		"ü":                       "%c3%bc",
	} {
		file, err := escapeName(name)
		if err != nil || file != want {
			t.Errorf("escape %q: %q, %v; want %q", name, file, err, want)
		}
		if back, ok := unescapeName(file); !ok || back != name {
			t.Errorf("unescape %q: %q, %v", file, back, ok)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", 300), strings.Repeat("X", 100)} {
		if _, err := escapeName(name); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
	for _, file := range []string{"", "Prod", "a%2", "a%zz", "%61", "a.b", "%2E"} {
		if name, ok := unescapeName(file); ok {
			t.Errorf("foreign file %q is taken for %q", file, name)
		}
	}
}

// The savepoint of a target is private to its owner.
func TestSavepointMode(t *testing.T) {
	path := t.TempDir()
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := openDirectory(path, syncPath)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.close()
	if _, err := createSavepointFile(dir, storedSavepoint{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path + "/a")
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if info.Size() != 2*slotSize {
		t.Errorf("size %d: a full disk could stop savepoints", info.Size())
	}
}
