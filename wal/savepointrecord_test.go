package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hwsagent/wal/internal/segment"
)

func randomMark(rng *rand.Rand, after Mark) Mark {
	m := Mark{
		Position: Position{Segment: after.Segment + rng.IntN(3), Offset: rng.Int64N(1 << 30)},
		Log:      ID{1}, SegmentID: ID{2, byte(rng.Uint32())},
		Commit: after.Commit + 1 + rng.Uint64N(1000),
	}
	m.Total = after.Total + rng.Uint64N(1<<30)
	return m
}

func randomSavepoint(rng *rand.Rand, name string, ranges int) storedSavepoint {
	st := storedSavepoint{Name: name, LastOpen: rng.Int64()}
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
		st.Orphan, st.Paused = rng.Int64N(1<<40), rng.Int64N(1<<40)
		st.Control = bytes.Repeat([]byte{7}, 1+rng.IntN(MaxControl))
	}
	return st
}

// decodeCells decodes cells in a row.
func decodeCells(t testing.TB, b []byte) (cells []cell) {
	t.Helper()
	for ; len(b) >= cellSize; b = b[cellSize:] {
		c, err := decodeCell(b[:cellSize])
		if err != nil {
			t.Fatal(err)
		}
		cells = append(cells, c)
	}
	return cells
}

func TestSavepointRecordRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 0))
	for ranges := range maxRanges + 1 {
		want := randomSavepoint(rng, "prod/eu", ranges)
		id := identity{kindSavepoint, false, 7, 42, ownerOf(want.Name)}
		b := appendRecord(nil, id, 1, appendSavepoint(nil, want))
		f := scanCells(1, decodeCells(t, b))
		if len(f.records) != 1 || len(f.bad) != 0 || f.records[0].identity != id {
			t.Fatalf("%d ranges: %+v", ranges, f)
		}
		got, err := decodeSavepoint(f.records[0].payload)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	}
}

// The largest savepoint that there can be is one record, and not the largest one.
func TestLargestSavepointFits(t *testing.T) {
	m := Mark{Position: Position{Segment: math.MaxInt, Offset: math.MaxInt64}, Log: ID{1}, SegmentID: ID{2}, Commit: math.MaxUint64, Total: math.MaxUint64}
	st := storedSavepoint{Name: strings.Repeat("x", maxNameBytes), LastOpen: math.MinInt64, Orphan: int64(maxOrphan), Paused: math.MinInt64}
	st.Start, st.High, st.Control = m, m, make([]byte, MaxControl)
	for range maxRanges {
		st.Done = append(st.Done, Range{m, m, m, 1 << 16})
	}
	if n := cellsFor(len(appendSavepoint(nil, st))); n > maxCells/2 {
		t.Errorf("it takes %d cells", n)
	}
}

func TestLogRecordRoundTrip(t *testing.T) {
	many := lostTargets{}
	for i := range uint64(maxLostOwners + 1) {
		many.add(i)
	}
	two := lostTargets{}
	two.add(ownerOf("a"))
	two.add(ownerOf("b"))
	for _, want := range []lostTargets{{}, {All: true}, two, many} {
		got, err := decodeLog(appendLog(nil, logRecord{Durable: Mark{Commit: 9, Log: ID{1}}, Lost: want}))
		if err != nil || got.Durable.Commit != 9 || got.Lost.All != want.All || !want.All && len(got.Lost.Owners) != len(want.Owners) {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
		if want.any() != got.Lost.any() || want.has("a") != got.Lost.has("a") {
			t.Errorf("%+v became %+v", want, got)
		}
	}
	if !many.All {
		t.Error("the owners are not bounded")
	}
	if _, err := decodeLog(nil); err == nil {
		t.Error("nothing is a record of the log")
	}
	if _, err := decodeLog(append(appendLog(nil, logRecord{}), 1)); err == nil {
		t.Error("a byte is left over")
	}
}

// Whatever bit of a cell is flipped, what is read is the record or nothing; and it is still known whose it was.
func TestCellSaysWhoseItIs(t *testing.T) {
	id := identity{kindSavepoint, true, 3, 4, ownerOf("a")}
	whole := appendRecord(nil, id, 1, appendSavepoint(nil, storedSavepoint{Name: "a"}))
	for i := range len(whole) * 8 {
		b := bytes.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		c, err := decodeCell(b)
		if newer := (*newerSavepointError)(nil); errors.As(err, &newer) {
			t.Fatalf("bit %d: %v", i, err)
		}
		if !c.known || c.identity != id || c.whole || c.blank {
			t.Fatalf("bit %d: %+v", i, c)
		}
	}
	older := appendRecord(nil, identity{kindSavepoint, true, 1, 2, ownerOf("a")}, 1, appendSavepoint(nil, storedSavepoint{Name: "a"}))
	for n := range cellSize { // as far as the disk has taken a write
		b := append(bytes.Clone(whole[:n]), make([]byte, cellSize-n)...)
		if c, err := decodeCell(b); n <= cellSize-identitySize && (err != nil || !c.blank || c.known) || c.whole {
			t.Fatalf("%d bytes, and zeros: %+v, %v", n, c, err)
		}
		b = append(bytes.Clone(whole[:n]), older[n:]...)
		if c, err := decodeCell(b); n <= cellSize-identitySize && (err != nil || !c.known || c.generation != 1) || n > 32 && c.whole {
			t.Fatalf("%d bytes, and an older cell: %+v, %v", n, c, err)
		}
	}
	if c, err := decodeCell(make([]byte, cellSize)); err != nil || !c.blank || c.known {
		t.Errorf("zeros: %+v, %v", c, err)
	}
	if c, err := decodeCell(bytes.Repeat([]byte{0xff}, cellSize)); err != nil || c.blank || c.known {
		t.Errorf("garbage: %+v, %v", c, err)
	}
}

// savepointPair is two savepoint files in memory, in the making.
type savepointPair struct {
	rng      *rand.Rand
	sequence uint64
	bytes    [2][]byte
	newest   map[string]uint64 // by target: the sequence number of its newest record
	at       [2]map[string][]int
}

// put appends a record to a file. The savepoint's Delivered is its sequence number.
func (p *savepointPair) put(file int, snapshot bool, generation uint64, count int, name string) {
	p.sequence++
	st := storedSavepoint{Name: name}
	st.Outcome.Delivered = p.sequence
	id := identity{kindSavepoint, snapshot, generation, p.sequence, ownerOf(name)}
	p.at[file][name] = append(p.at[file][name], len(p.bytes[file])/cellSize)
	p.bytes[file] = appendRecord(p.bytes[file], id, count, appendSavepoint(nil, st))
	p.newest[name] = p.sequence
}

// snapshot begins a file anew.
func (p *savepointPair) snapshot(file int, generation uint64, names []string) {
	p.bytes[file], p.at[file] = nil, map[string][]int{}
	p.sequence++
	p.bytes[file] = appendRecord(nil, identity{kindLog, true, generation, p.sequence, 0}, len(names)+1, appendLog(nil, logRecord{}))
	for _, name := range names {
		p.put(file, true, generation, len(names)+1, name)
	}
}

// merged is what the files say.
func (p *savepointPair) merged(t testing.TB) savedTargets {
	t.Helper()
	var files [2]savepointFile
	for i := range files {
		files[i] = scanCells(i, decodeCells(t, p.bytes[i]))
	}
	return mergeSavepoints(files)
}

func newSavepointPair(names []string) *savepointPair {
	p := &savepointPair{rng: rand.New(rand.NewPCG(36, 0)), newest: map[string]uint64{}}
	p.snapshot(0, 1, names)
	p.snapshot(1, 2, names)
	for _, name := range names[:len(names)/2] { // the first half has changed since
		p.put(1, false, 2, len(p.bytes[1])/cellSize, name) // each is durable before the next
	}
	return p
}

func targetNames(n int) (names []string) {
	for i := range n {
		names = append(names, "e/"+crashIndex(i))
	}
	slices.Sort(names)
	return names
}

// TestOneDamagedRecordOfAThousandTargets: damage to any one record costs one target its newest record, at most, and no
// other target anything.
func TestOneDamagedRecordOfAThousandTargets(t *testing.T) {
	names := targetNames(1000)
	p := newSavepointPair(names)
	whole := p.merged(t)
	if len(whole.byName) != len(names) || whole.damaged != 0 || whole.base != 1 {
		t.Fatalf("%d targets, %d damaged, base %d", len(whole.byName), whole.damaged, whole.base)
	}
	hit := 0
	sampled(t, len(p.bytes[1])/cellSize, 150, func(i int) {
		b := p.bytes[1][i*cellSize:]
		at := p.rng.IntN(cellSize)
		b[at] ^= 1
		defer func() { b[at] ^= 1 }()
		got := p.merged(t)
		var harmed []string
		for name, st := range got.byName {
			if st.doubt || st.Outcome.Delivered != p.newest[name] {
				harmed = append(harmed, name)
				if !st.doubt {
					t.Errorf("cell %d: %s is behind, and nothing says so", i, name)
				}
			}
		}
		if len(got.byName) != len(names) || len(harmed) > 1 || got.log.Lost.any() {
			t.Fatalf("cell %d: %d targets, harmed %q, lost %+v", i, len(got.byName), harmed, got.log.Lost)
		}
		hit += len(harmed)
	})
	if hit == 0 {
		t.Error("no damage hit the newest record of a target")
	}
}

// Whatever pages of a file are lost, in whatever way, a target whose newest record is gone is doubted or known to be lost.
func TestSavepointPagesLost(t *testing.T) {
	names := targetNames(40)
	for _, page := range []int{cellSize, 4096, segment.PageSize} {
		for file := range 2 {
			for how, fill := range map[string]byte{"zeroed": 0, "garbage": 0xa5} {
				p := newSavepointPair(names)
				was := bytes.Clone(p.bytes[file])
				for at := 0; at < len(was); at += page {
					copy(p.bytes[file], was)
					b := p.bytes[file][at:min(at+page, len(was))]
					for i := range b {
						b[i] = fill
					}
					got := p.merged(t)
					for name, newest := range p.newest {
						st := got.byName[name]
						last := slices.Max(append(p.at[file][name], -1))
						gone := file == 1 && last*cellSize >= at && last*cellSize < at+page
						behind := st == nil && !got.log.Lost.has(name) || st != nil && st.Outcome.Delivered != newest && !st.doubt
						// Zeros at the very end are as if nothing had been written there.
						if tail := how == "zeroed" && at+page >= len(was); behind && !(gone && tail) {
							t.Errorf("file %d, %d bytes at %d %s: %s is behind, and nothing says so", file, page, at, how, name)
						}
					}
				}
			}
		}
	}
}

// A power cut in the middle of a snapshot leaves any of its cells, and of those of the generation before: the other file
// has everything, and nothing is doubted.
func TestSnapshotTornByAPowerCut(t *testing.T) {
	names := targetNames(30)
	rng := rand.New(rand.NewPCG(37, 0))
	for round := range 200 {
		p := newSavepointPair(names)
		before := bytes.Clone(p.bytes[0])
		p.snapshot(0, 3, names)
		lost := 0
		for at := 0; at < len(p.bytes[0]); at += cellSize {
			if rng.IntN(4) < round%5 { // none at first
				lost++
				copy(p.bytes[0][at:at+cellSize], append(bytes.Clone(before[min(at, len(before)):]), make([]byte, cellSize)...))
			}
		}
		got := p.merged(t)
		want := 1
		if lost == 0 {
			want = 0
		}
		if got.base != want {
			t.Fatalf("%d cells lost: file %d counts as whole", lost, got.base)
		}
		for name, st := range got.byName {
			if at := st.Outcome.Delivered; st.doubt || at != p.newest[name] && st.record.file != 1 {
				t.Fatalf("%d cells lost: %s has record %d", lost, name, at)
			}
		}
		if len(got.byName) != len(names) || got.log.Lost.any() {
			t.Fatalf("%d cells lost: %d targets, %+v", lost, len(got.byName), got.log.Lost)
		}
	}
}

// What a power cut took of the records appended last had never been durable: nothing is doubted.
func TestAppendedRecordsLostToAPowerCut(t *testing.T) {
	p := newSavepointPair([]string{"a", "b"})
	durable := len(p.bytes[1]) / cellSize
	for range 6 {
		p.put(1, false, 2, durable, "a")
	}
	clear(p.bytes[1][(durable+1)*cellSize : (durable+4)*cellSize])
	if got := p.merged(t); got.byName["a"].doubt || got.byName["b"].doubt || got.damaged > 0 || got.byName["a"].Outcome.Delivered != p.newest["a"] {
		t.Errorf("%+v", got.byName["a"])
	}
	// A record of several cells may lose some of them.
	st := storedSavepoint{Name: "a", Savepoint: Savepoint{Control: make([]byte, 1000)}}
	for _, lost := range []int{0, 1, 2} {
		b := appendRecord(nil, identity{kindSavepoint, false, 2, 99, ownerOf("a")}, durable, appendSavepoint(nil, st))
		clear(b[lost*cellSize : (lost+1)*cellSize])
		whole := p.bytes[1]
		p.bytes[1] = slices.Concat(whole, b)
		if got := p.merged(t); got.byName["b"].doubt || got.log.Lost.any() {
			t.Errorf("cell %d lost: %+v", lost, got.byName["b"])
		}
		p.bytes[1] = whole
	}
}

// Once a target has ended, no older record brings it back, whichever file has that.
func TestEndedTargetStaysAway(t *testing.T) {
	for _, kind := range []recordKind{kindDrop, kindRename} {
		p := newSavepointPair([]string{"a", "b"})
		p.sequence++
		payload := appendText(nil, "a")
		if kind == kindRename {
			payload = appendSavepoint(payload, storedSavepoint{Name: "c"})
		}
		p.bytes[1] = appendRecord(p.bytes[1], identity{kind, false, 2, p.sequence, ownerOf("a")}, 3, payload)
		got := p.merged(t)
		if got.byName["a"] != nil || got.byName["b"] == nil || (got.byName["c"] != nil) != (kind == kindRename) {
			t.Errorf("kind %d: %v", kind, got.byName)
		}
		p.put(1, false, 2, 3, "a") // and begins again
		if got := p.merged(t); got.byName["a"] == nil {
			t.Errorf("kind %d: it does not begin again", kind)
		}
	}
}

// A file of which nothing is left may have had the newest of everything.
func TestSavepointFileGone(t *testing.T) {
	names := targetNames(3)
	for file := range 2 {
		for what, b := range map[string][]byte{"empty": {}, "zeros": make([]byte, 4096), "garbage": bytes.Repeat([]byte("garbage "), 512)} {
			p := newSavepointPair(names)
			p.bytes[file] = b
			got := p.merged(t)
			if len(got.byName) != 3 || !got.log.Lost.All || got.base != 1-file {
				t.Fatalf("file %d %s: %d targets, base %d, lost %+v", file, what, len(got.byName), got.base, got.log.Lost)
			}
			for name, st := range got.byName {
				if !st.doubt {
					t.Errorf("file %d %s: %s is not doubted", file, what, name)
				}
			}
			p.bytes[1-file] = b
			if got := p.merged(t); len(got.byName) != 0 || !got.log.Lost.All {
				t.Errorf("both %s: %d targets, %+v", what, len(got.byName), got.log.Lost)
			}
		}
	}
	if got := mergeSavepoints([2]savepointFile{{}, {index: 1}}); got.log.Lost.any() || got.damaged > 0 {
		t.Errorf("nothing there at all: %+v", got)
	}
}

// Records that this version does not write are left out.
func TestForeignRecords(t *testing.T) {
	p := newSavepointPair([]string{"a"})
	for _, kind := range []recordKind{99, kindSavepoint, kindLog} {
		p.sequence++
		p.bytes[1] = appendRecord(p.bytes[1], identity{kind, false, 2, p.sequence, ownerOf("a")}, 2, []byte{1, 2, 3})
	}
	if got := p.merged(t); len(got.byName) != 1 || got.byName["a"].Outcome.Delivered != p.newest["a"] {
		t.Errorf("%+v", got.byName)
	}
	bad := storedSavepoint{Name: "a"}
	bad.Done = []Range{{From: Mark{Commit: 2}, To: Mark{Commit: 1}}}
	if _, err := decodeSavepoint(appendSavepoint(nil, bad)); err == nil {
		t.Error("ranges out of order are taken")
	}
}

func TestSavepointCapacity(t *testing.T) {
	for n, want := range map[int64]int64{0: minSavepointFile, 512: minSavepointFile, 50 << 10: 512 << 10, 20 << 20: maxSavepointFile, 40 << 20: 128 << 20} {
		if got := savepointCapacity(n); got != want {
			t.Errorf("a snapshot of %d bytes: %d, want %d", n, got, want)
		}
	}
	if compactionDue(50, 100) || !compactionDue(51, 100) || !compactionDue(100, 100) {
		t.Error("compaction is due at another time")
	}
	if cellsFor(0) != 1 || cellsFor(cellPayload) != 1 || cellsFor(cellPayload+1) != 2 {
		t.Error("cells of a record")
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "Prod", "a.b/c d", "ü", "nul", strings.Repeat("x", maxNameBytes)} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", maxNameBytes+1), strings.Repeat("X", 100)} {
		if CheckName(name) == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

// fixIdentity makes the checksum of an identity right.
func fixIdentity(b []byte) {
	binary.BigEndian.PutUint32(b[identitySize-4:], crc32.Checksum(b[:identitySize-4], segment.Castagnoli))
}
