package savefile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"hwsagent/wal/internal/segment"
)

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

// Whatever bit of a slot is flipped, and however much of it a write has reached, it is damaged and nothing else.
func TestDamagedSlot(t *testing.T) {
	whole := appendRecord(nil, header{kindTarget, true, 3, 4, 1}, numberOf("a", 1))
	if s, err := decodeSlot(whole); err != nil || !s.good || s.header != (header{kindTarget, true, 3, 4, 1}) {
		t.Fatalf("%+v, %v", s, err)
	}
	isDamaged := func(what string, n int, b []byte) {
		if s, err := decodeSlot(b); err != nil || s.good || s.blank {
			t.Fatalf("%s %d: %+v, %v", what, n, s, err)
		}
	}
	for i := range len(whole) * 8 {
		b := bytes.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		isDamaged("bit", i, b)
	}
	for n := 1; n <= slotHead; n++ {
		isDamaged("bytes, and zeros:", n, append(bytes.Clone(whole[:n]), make([]byte, slotSize-n)...))
	}
	isDamaged("garbage", 0, bytes.Repeat([]byte{0xff}, slotSize))
	if s, err := decodeSlot(make([]byte, slotSize)); err != nil || !s.blank {
		t.Errorf("zeros: %+v, %v", s, err)
	}
}

// numberOf is the payload of a record of a target whose content is a number.
func numberOf(name string, n uint64) []byte { return binary.AppendUvarint(appendText(nil, name), n) }

// filePair is two savepoint files in memory, in the making.
type filePair struct {
	sequence uint64
	bytes    [2][]byte
	head     [2]header
	newest   map[string]uint64 // by target: the sequence number of its newest record
	at       map[string]int    // and the slot of it, in file 1
}

// put appends a record of a target to a file. Its number is its sequence number.
func (p *filePair) put(file int, name string) {
	p.add(file, kindTarget, numberOf(name, p.sequence+1))
	p.newest[name] = p.sequence
	if file == 1 {
		p.at[name] = len(p.bytes[1])/slotSize - 1
	}
}

func (p *filePair) add(file int, k kind, payload []byte) {
	p.sequence++
	h := p.head[file]
	h.kind, h.sequence = k, p.sequence
	p.bytes[file] = appendRecord(p.bytes[file], h, payload)
}

// begin begins a file: with the state, and a record that proves it if that is wanted.
func (p *filePair) begin(file int, isProven bool, names ...string) {
	p.bytes[file], p.head[file] = nil, header{state: true, since: p.sequence + 1, slots: uint32(len(names) + 1)}
	p.add(file, kindLog, appendLog(nil, LogRecord{}))
	for _, name := range names {
		p.put(file, name)
	}
	p.head[file].state = false
	if isProven {
		p.add(file, kindLog, appendLog(nil, LogRecord{}))
	}
}

// merged is what the files say, and what those of one length with zeros behind would say.
func (p *filePair) merged(t testing.TB) found {
	t.Helper()
	var files [2][]slot
	var sizes [2]int64
	for i, b := range p.bytes {
		for ; len(b) >= slotSize; b = b[slotSize:] {
			s, err := decodeSlot(b[:slotSize])
			if err != nil {
				t.Fatal(err)
			}
			files[i] = append(files[i], s)
		}
		sizes[i] = minFile
	}
	return foundOf(t, merge(files, sizes))
}

func newFilePair(names ...string) *filePair {
	p := &filePair{newest: map[string]uint64{}, at: map[string]int{}}
	p.begin(0, true, names...)
	p.begin(1, true, names...)
	for _, name := range names[:len(names)/2] { // the first half has changed since
		p.put(1, name)
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

// TestOneDamagedSlotOfManyTargets: damage to any one slot takes no target away, and is counted, but for the slot written last, which
// may be a write that failed.
func TestOneDamagedSlotOfManyTargets(t *testing.T) {
	names := targetNames(200)
	p := newFilePair(names...)
	if got := p.merged(t); !maps.Equal(got.numbers, p.newest) || got.Bad != 0 || got.base != 1 || got.Log.Lost {
		t.Fatalf("%d targets, %d bad, base %d", len(got.numbers), got.Bad, got.base)
	}
	rng := rand.New(rand.NewPCG(36, 0))
	slots := len(p.bytes[1]) / slotSize
	for i := 0; i < slots; i++ {
		b := p.bytes[1][i*slotSize:]
		at := rng.IntN(slotSize)
		b[at] ^= 1
		got := p.merged(t)
		b[at] ^= 1
		behind := 0
		for _, name := range names {
			if got.numbers[name] != p.newest[name] {
				behind++
			}
		}
		if isLast := i == slots-1; len(got.numbers) != len(names) || behind > 1 || (got.Bad == 1) == isLast || got.Log.Lost == isLast {
			t.Fatalf("slot %d: %d targets, %d behind, %d bad, lost %t", i, len(got.numbers), behind, got.Bad, got.Log.Lost)
		}
	}
}

// Whatever pages of a file are lost, in whatever way, no target is lost in silence, and one whose newest record turned to garbage is
// counted. Zeros behind the state are as if nothing had been written there.
func TestPagesLost(t *testing.T) {
	names := targetNames(40)
	for _, page := range []int{2 * slotSize, 4096, segment.PageSize} {
		for file := range 2 {
			for how, fill := range map[string]byte{"zeroed": 0, "garbage": 0xa5} {
				p := newFilePair(names...)
				was := bytes.Clone(p.bytes[file])
				for at := 0; at < len(was); at += page {
					copy(p.bytes[file], was)
					b := p.bytes[file][at:min(at+page, len(was))]
					for i := range b {
						b[i] = fill
					}
					got := p.merged(t)
					for name, newest := range p.newest {
						n, has := got.numbers[name]
						zeroed := how == "zeroed" && file == 1 && p.at[name] > len(names) && p.at[name]*slotSize >= at && p.at[name]*slotSize < at+page
						if got.Bad == 0 && (!has || n != newest && !zeroed) {
							t.Errorf("file %d, %d bytes at %d %s: %s is behind, and nothing says so", file, page, at, how, name)
						}
					}
				}
			}
		}
	}
}

// A power cut while a file is begun leaves any of its slots, and of those before: the other file has everything, and nothing is bad.
func TestStateTornByAPowerCut(t *testing.T) {
	names := targetNames(30)
	rng := rand.New(rand.NewPCG(37, 0))
	for round := range 200 {
		p := newFilePair(names...)
		before, older := bytes.Clone(p.bytes[0]), maps.Clone(p.newest)
		p.begin(0, false, names...)
		lost := 0
		for at := 0; at < len(p.bytes[0]); at += slotSize {
			if rng.IntN(4) < round%5 { // none at first
				lost++
				copy(p.bytes[0][at:at+slotSize], append(bytes.Clone(before[min(at, len(before)):]), make([]byte, slotSize)...))
			}
		}
		got, want := p.merged(t), older
		if lost == 0 {
			want = p.newest
		}
		if !maps.Equal(got.numbers, want) || got.Bad > 0 || (got.base == 0) != (lost == 0) {
			t.Fatalf("%d slots lost: base %d, %d bad, %v instead of %v", lost, got.base, got.Bad, got.numbers, want)
		}
	}
}

// What a power cut took of the records appended last had never been durable: nothing is bad.
func TestAppendedRecordsLostToAPowerCut(t *testing.T) {
	p := newFilePair("a", "b")
	end := len(p.bytes[1])
	for range 6 {
		p.put(1, "a")
	}
	clear(p.bytes[1][end+slotSize : end+4*slotSize])
	if got := p.merged(t); !maps.Equal(got.numbers, p.newest) || got.Bad > 0 {
		t.Errorf("%+v", got)
	}
	// A record of several slots may lose some of them.
	p.sequence++
	h := p.head[1]
	h.kind, h.sequence = kindTarget, p.sequence
	long := appendRecord(nil, h, append(numberOf("a", 5), make([]byte, 1000)...))
	whole := p.bytes[1]
	for lost := range len(long) / slotSize {
		b := bytes.Clone(long)
		clear(b[lost*slotSize : (lost+1)*slotSize])
		p.bytes[1] = slices.Concat(whole, b)
		if got := p.merged(t); !maps.Equal(got.numbers, p.newest) || got.Bad > 0 {
			t.Errorf("slot %d lost: %+v", lost, got)
		}
	}
}

// Once a target has ended, no older record brings it back, whichever file has that, nor when the record of its end is overwritten.
func TestEndedTargetStaysAway(t *testing.T) {
	for _, k := range []kind{kindDrop, kindRename} {
		p := newFilePair("a", "b")
		payload, rest := appendText(nil, "a"), []string{"b"}
		if k == kindRename {
			payload, rest = append(payload, numberOf("c", 1)...), []string{"b", "c"}
		}
		p.add(1, k, payload)
		check := func(when string) {
			if got := p.merged(t); !slices.Equal(slices.Sorted(maps.Keys(got.numbers)), rest) {
				t.Errorf("kind %d, %s: %v", k, when, got.numbers)
			}
		}
		check("at once")
		old := p.bytes
		p.begin(0, false, rest...)
		p.bytes[0] = append(p.bytes[0], old[0][len(p.bytes[0]):]...)
		check("after the other file was begun")
		p.begin(1, false, rest...)
		p.bytes[1] = append(bytes.Clone(p.bytes[1][:slotSize]), old[1][slotSize:2*slotSize]...)
		check("when a power cut has torn the next state")
		p.put(0, "a") // and begins again
		if got := p.merged(t); got.numbers["a"] == 0 {
			t.Errorf("kind %d: it does not begin again", k)
		}
	}
}

// A file of which nothing is left, or that is a copy of the other, may have had the newest of everything.
func TestFileGone(t *testing.T) {
	names := targetNames(3)
	for file := range 2 {
		for what, b := range map[string][]byte{"empty": {}, "zeros": make([]byte, 4096), "garbage": bytes.Repeat([]byte("garbage "), 512), "copy": nil} {
			p := newFilePair(names...)
			if p.bytes[file] = b; what == "copy" {
				p.bytes[file] = p.bytes[1-file]
			}
			got := p.merged(t)
			if len(got.numbers) != 3 || !got.Log.Lost || got.Bad == 0 || what != "copy" && got.base != 1-file {
				t.Fatalf("file %d %s: %d targets, base %d, lost %+v", file, what, len(got.numbers), got.base, got.Log.Lost)
			}
			p.bytes = [2][]byte{b, b}
			if got := p.merged(t); len(got.numbers) != 0 || !got.Log.Lost {
				t.Errorf("both %s: %d targets, %+v", what, len(got.numbers), got.Log.Lost)
			}
		}
	}
	if got := merge([2][]slot{}, [2]int64{}); got.Log.Lost || got.Bad > 0 {
		t.Errorf("nothing there at all: %+v", got)
	}
}

// Records that this version does not write are left out.
func TestForeignRecords(t *testing.T) {
	p := newFilePair("a")
	for _, k := range []kind{99, kindTarget, kindLog} {
		p.add(1, k, []byte{9, 'a'})
	}
	if got := p.merged(t); !maps.Equal(got.numbers, p.newest) {
		t.Errorf("%+v", got.numbers)
	}
}

func TestCapacity(t *testing.T) {
	for n, want := range map[int64]int64{0: minFile, 512: minFile, 50 << 10: 512 << 10, 16 << 20: maxFile, 20 << 20: 128 << 20} {
		if got := capacity(n); got != want {
			t.Errorf("a state of %d bytes: %d, want %d", n, got, want)
		}
	}
	if slotsFor(0) != 1 || slotsFor(slotPayload) != 1 || slotsFor(slotPayload+1) != 2 {
		t.Error("slots of a record")
	}
}

// FuzzLogRecord: no bytes make the decoder fail otherwise than by an error.
func FuzzLogRecord(f *testing.F) {
	f.Add(appendLog(nil, LogRecord{Durable: segment.Mark{Commit: 9}, Lost: true}))
	f.Fuzz(func(_ *testing.T, payload []byte) {
		_, _ = decodeLog(payload) // must return
	})
}
