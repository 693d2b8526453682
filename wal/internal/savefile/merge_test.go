package savefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"hwsagent/wal/internal/segment"
)

// numberOf is the payload of a record with a number for a body.
func numberOf(name string, n uint64) []byte {
	return binary.AppendUvarint(appendText(nil, name), n)
}

// decodeNumber decodes such a body; bytes behind the number are left out.
func decodeNumber(body []byte) (uint64, error) {
	n, size := binary.Uvarint(body)
	if size <= 0 {
		return 0, errors.New("no number")
	}
	return n, nil
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

func TestLogRecordRoundTrip(t *testing.T) {
	for _, lost := range []bool{false, true} {
		want := LogRecord{Durable: segment.Mark{Commit: 9, Log: segment.ID{1}}, Lost: lost}
		if got, err := decodeLog(appendLog(nil, want)); err != nil || got != want {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
	}
	if _, err := decodeLog(nil); err == nil {
		t.Error("nothing is a record of the log")
	}
	if _, err := decodeLog(append(appendLog(nil, LogRecord{}), 1)); err == nil {
		t.Error("a byte is left over")
	}
}

// Whatever bit of a cell is flipped, what is read is the record or nothing; and it is still known which one it was. Of a cell that was
// written in part, the one before counts.
func TestDamagedCell(t *testing.T) {
	id := identity{kindTarget, true, 3, 4}
	whole := appendRecord(nil, id, 1, numberOf("a", 1))
	for i := range len(whole) * 8 {
		b := bytes.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		c, err := decodeCell(b)
		if newer := (*FormatError)(nil); errors.As(err, &newer) {
			t.Fatalf("bit %d: %v", i, err)
		}
		if !c.known || c.identity != id || c.whole || c.blank {
			t.Fatalf("bit %d: %+v", i, c)
		}
	}
	older := appendRecord(nil, identity{kindTarget, true, 1, 2}, 1, numberOf("a", 1))
	for n := range cellSize { // as far as the disk has taken a write
		b := append(bytes.Clone(whole[:n]), make([]byte, cellSize-n)...)
		if c, err := decodeCell(b); n <= cellSize-identitySize && (err != nil || !c.blank || c.known) || c.whole {
			t.Fatalf("%d bytes, and zeros: %+v, %v", n, c, err)
		}
		b = append(bytes.Clone(whole[:n]), older[n:]...)
		if c, err := decodeCell(b); n <= cellSize-identitySize && (err != nil || !c.known || c.generation != 1) || n > identitySize && c.whole {
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

// filePair is two savepoint files in memory, in the making.
type filePair struct {
	rng      *rand.Rand
	sequence uint64
	bytes    [2][]byte
	newest   map[string]uint64 // by target: the sequence number of its newest record
	at       [2]map[string][]int
}

// put appends a record to a file. Its number is its sequence number.
func (p *filePair) put(file int, snapshot bool, generation uint64, count int, name string) {
	p.sequence++
	id := identity{kindTarget, snapshot, generation, p.sequence}
	p.at[file][name] = append(p.at[file][name], len(p.bytes[file])/cellSize)
	p.bytes[file] = appendRecord(p.bytes[file], id, count, numberOf(name, p.sequence))
	p.newest[name] = p.sequence
}

// snapshot begins a file anew.
func (p *filePair) snapshot(file int, generation uint64, names []string) {
	p.bytes[file], p.at[file] = nil, map[string][]int{}
	p.sequence++
	p.bytes[file] = appendRecord(nil, identity{kindLog, true, generation, p.sequence}, len(names)+1, appendLog(nil, LogRecord{}))
	for _, name := range names {
		p.put(file, true, generation, len(names)+1, name)
	}
}

// merged is what the files say.
func (p *filePair) merged(t testing.TB) Saved[uint64] {
	t.Helper()
	var files [2]contents
	for i := range files {
		files[i] = scanCells(i, decodeCells(t, p.bytes[i]))
	}
	return merge(files, decodeNumber)
}

func newFilePair(names []string) *filePair {
	p := &filePair{rng: rand.New(rand.NewPCG(36, 0)), newest: map[string]uint64{}}
	p.snapshot(0, 1, names)
	p.snapshot(1, 2, names)
	for _, name := range names[:len(names)/2] { // the first half has changed since
		p.put(1, false, 2, len(p.bytes[1])/cellSize, name) // each is durable before the next
	}
	return p
}

func targetNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("e/", i))
	}
	slices.Sort(names)
	return names
}

// TestOneDamagedRecordOfAThousandTargets: damage to any one record takes no target away, and puts all in doubt.
func TestOneDamagedRecordOfAThousandTargets(t *testing.T) {
	names := targetNames(1000)
	p := newFilePair(names)
	whole := p.merged(t)
	if len(whole.Targets) != len(names) || whole.Damaged != 0 || whole.Base != 1 || whole.Log.Lost {
		t.Fatalf("%d targets, %d damaged, base %d", len(whole.Targets), whole.Damaged, whole.Base)
	}
	step := 1
	if testing.Short() {
		step = 16 // the race detector sees the same goroutines each time
	}
	for i := 0; i < len(p.bytes[1])/cellSize; i += step {
		b := p.bytes[1][i*cellSize:]
		at := p.rng.IntN(cellSize)
		b[at] ^= 1
		got := p.merged(t)
		b[at] ^= 1
		behind := 0
		for name, st := range got.Targets {
			if !st.Doubt {
				t.Errorf("cell %d: %s is not in doubt", i, name)
			}
			if st.Value != p.newest[name] {
				behind++
			}
		}
		if len(got.Targets) != len(names) || behind > 1 || !got.Log.Lost {
			t.Fatalf("cell %d: %d targets, %d behind, lost %t", i, len(got.Targets), behind, got.Log.Lost)
		}
	}
}

// Whatever pages of a file are lost, in whatever way, a target whose newest record is gone is doubted or known to be lost.
func TestPagesLost(t *testing.T) {
	names := targetNames(40)
	for _, page := range []int{cellSize, 4096, segment.PageSize} {
		for file := range 2 {
			for how, fill := range map[string]byte{"zeroed": 0, "garbage": 0xa5} {
				p := newFilePair(names)
				was := bytes.Clone(p.bytes[file])
				for at := 0; at < len(was); at += page {
					copy(p.bytes[file], was)
					b := p.bytes[file][at:min(at+page, len(was))]
					for i := range b {
						b[i] = fill
					}
					got := p.merged(t)
					for name, newest := range p.newest {
						st := got.Targets[name]
						last := slices.Max(append(p.at[file][name], -1))
						gone := file == 1 && last*cellSize >= at && last*cellSize < at+page
						behind := st == nil && !got.Log.Lost || st != nil && st.Value != newest && !st.Doubt
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
		p := newFilePair(names)
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
		if got.Base != want {
			t.Fatalf("%d cells lost: file %d counts as whole", lost, got.Base)
		}
		for name, st := range got.Targets {
			if at := st.Value; st.Doubt || at != p.newest[name] && st.record.file != 1 {
				t.Fatalf("%d cells lost: %s has record %d", lost, name, at)
			}
		}
		if len(got.Targets) != len(names) || got.Log.Lost {
			t.Fatalf("%d cells lost: %d targets, %+v", lost, len(got.Targets), got.Log.Lost)
		}
	}
}

// What a power cut took of the records appended last had never been durable: nothing is doubted.
func TestAppendedRecordsLostToAPowerCut(t *testing.T) {
	p := newFilePair([]string{"a", "b"})
	durable := len(p.bytes[1]) / cellSize
	for range 6 {
		p.put(1, false, 2, durable, "a")
	}
	clear(p.bytes[1][(durable+1)*cellSize : (durable+4)*cellSize])
	if got := p.merged(t); got.Targets["a"].Doubt || got.Targets["b"].Doubt || got.Damaged > 0 || got.Targets["a"].Value != p.newest["a"] {
		t.Errorf("%+v", got.Targets["a"])
	}
	// A record of several cells may lose some of them.
	long := append(numberOf("a", 5), make([]byte, 1000)...)
	for _, lost := range []int{0, 1, 2} {
		b := appendRecord(nil, identity{kindTarget, false, 2, 99}, durable, long)
		clear(b[lost*cellSize : (lost+1)*cellSize])
		whole := p.bytes[1]
		p.bytes[1] = slices.Concat(whole, b)
		if got := p.merged(t); got.Targets["b"].Doubt || got.Log.Lost {
			t.Errorf("cell %d lost: %+v", lost, got.Targets["b"])
		}
		p.bytes[1] = whole
	}
}

// Once a target has ended, no older record brings it back, whichever file has that.
func TestEndedTargetStaysAway(t *testing.T) {
	for _, kind := range []recordKind{kindDrop, kindRename} {
		p := newFilePair([]string{"a", "b"})
		p.sequence++
		payload := appendText(nil, "a")
		if kind == kindRename {
			payload = append(payload, numberOf("c", 1)...)
		}
		p.bytes[1] = appendRecord(p.bytes[1], identity{kind, false, 2, p.sequence}, 3, payload)
		got := p.merged(t)
		if got.Targets["a"] != nil || got.Targets["b"] == nil || (got.Targets["c"] != nil) != (kind == kindRename) {
			t.Errorf("kind %d: %v", kind, got.Targets)
		}
		p.put(1, false, 2, 3, "a") // and begins again
		if got := p.merged(t); got.Targets["a"] == nil {
			t.Errorf("kind %d: it does not begin again", kind)
		}
	}
}

// A file of which nothing is left may have had the newest of everything.
func TestFileGone(t *testing.T) {
	names := targetNames(3)
	for file := range 2 {
		for what, b := range map[string][]byte{"empty": {}, "zeros": make([]byte, 4096), "garbage": bytes.Repeat([]byte("garbage "), 512)} {
			p := newFilePair(names)
			p.bytes[file] = b
			got := p.merged(t)
			if len(got.Targets) != 3 || !got.Log.Lost || got.Base != 1-file {
				t.Fatalf("file %d %s: %d targets, base %d, lost %+v", file, what, len(got.Targets), got.Base, got.Log.Lost)
			}
			for name, st := range got.Targets {
				if !st.Doubt {
					t.Errorf("file %d %s: %s is not doubted", file, what, name)
				}
			}
			p.bytes[1-file] = b
			if got := p.merged(t); len(got.Targets) != 0 || !got.Log.Lost {
				t.Errorf("both %s: %d targets, %+v", what, len(got.Targets), got.Log.Lost)
			}
		}
	}
	if got := merge([2]contents{{}, {index: 1}}, decodeNumber); got.Log.Lost || got.Damaged > 0 {
		t.Errorf("nothing there at all: %+v", got)
	}
}

// Records that this version does not write are left out.
func TestForeignRecords(t *testing.T) {
	p := newFilePair([]string{"a"})
	for _, kind := range []recordKind{99, kindTarget, kindLog} {
		p.sequence++
		p.bytes[1] = appendRecord(p.bytes[1], identity{kind, false, 2, p.sequence}, 2, []byte{1, 'a'})
	}
	if got := p.merged(t); len(got.Targets) != 1 || got.Targets["a"].Value != p.newest["a"] {
		t.Errorf("%+v", got.Targets)
	}
}

func TestCapacity(t *testing.T) {
	for n, want := range map[int64]int64{0: minFile, 512: minFile, 50 << 10: 512 << 10, 20 << 20: maxFile, 40 << 20: 128 << 20} {
		if got := capacity(n); got != want {
			t.Errorf("a snapshot of %d bytes: %d, want %d", n, got, want)
		}
	}
	if compactionDue(30, 80) || !compactionDue(31, 80) || compactionUrgent(40, 80) || !compactionUrgent(41, 80) {
		t.Error("compaction is due at another time")
	}
	if cellsFor(0) != 1 || cellsFor(cellPayload) != 1 || cellsFor(cellPayload+1) != 2 {
		t.Error("cells of a record")
	}
}

// A file that has only its snapshot is not left for a new one: else every round would write all targets.
func TestSnapshotAloneIsNotDue(t *testing.T) {
	for n := int64(cellSize); n < 1<<30; n += n/100 + cellSize {
		if size := capacity(n); compactionDue(n+n/8, size) {
			t.Fatalf("a snapshot of %d bytes is due again after %d more, in a file of %d", n, n/8, size)
		}
	}
}

// A file of any length that it is ever made is not taken for one that is cut off.
func TestEveryLengthIsWhole(t *testing.T) {
	for n := int64(1); n < 1<<30; n += n/7 + 1 {
		if size := capacity(n); !wholeLength(size) {
			t.Errorf("a file of %d bytes, made for a snapshot of %d, counts as cut off", size, n)
		}
	}
	for _, size := range []int64{1, 511, 512, 4096, minFile / 2, minFile + 512, 3 * minFile, -1} {
		if wholeLength(size) {
			t.Errorf("a file of %d bytes counts as whole", size)
		}
	}
}

// One file is overwritten with a copy of the other: what was in it is missed.
func TestFileCopiedOverTheOther(t *testing.T) {
	names := targetNames(3)
	for file := range 2 {
		p := newFilePair(names)
		p.bytes[1-file] = bytes.Clone(p.bytes[file])
		got := p.merged(t)
		for name, st := range got.Targets {
			if !st.Doubt && st.Value != p.newest[name] {
				t.Errorf("copy of file %d: %s is behind, and nothing says so", file, name)
			}
		}
		if got.Damaged == 0 || len(got.Targets) != len(names) {
			t.Errorf("copy of file %d: %d targets, %d damaged", file, len(got.Targets), got.Damaged)
		}
	}
}

// FuzzLogRecord: no bytes make the decoder fail otherwise than by an error.
func FuzzLogRecord(f *testing.F) {
	f.Add(appendLog(nil, LogRecord{Durable: segment.Mark{Commit: 9}, Lost: true}))
	f.Fuzz(func(_ *testing.T, payload []byte) {
		_, _ = decodeLog(payload) // must return
	})
}
