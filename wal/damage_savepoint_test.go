package wal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// keeps opens the log with a damaged savepoint of the target "half", and checks that it
// gets everything that it has not acknowledged, and the other target what it should.
func (w *writtenLog) keeps(what string, file []byte) {
	w.t.Helper()
	h := harm{what: what, saves: map[string][]byte{"half": file}, touched: func(writtenCommit) bool { return false }}
	segments, saves := w.dirs(h)
	l, err := Open(w.options(segments, saves))
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	defer func() { _ = l.Close() }()
	if err := commitFloats(l, 3, 1, 1); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	for name, commits := range map[string][]writtenCommit{"all": w.commits, "half": w.commits[w.half:]} {
		r, err := l.Reader(name, ReaderOptions{})
		if err != nil {
			w.t.Fatalf("%s: %v", what, err)
		}
		// What half gets once more is not compared: it is no loss.
		sp := r.Savepoint()
		if from := w.commits[w.half-1].number; name == "half" && sp.Acked().Commit > from {
			w.t.Fatalf("%s: the target goes on after commit %d, it has acknowledged %d", what, sp.Acked().Commit, from)
		} else if name == "half" {
			for ; sp.Acked().Commit < from; sp = r.Savepoint() {
				e := nextOf(w.t, r)
				o := e.Missing
				o.Delivered = e.Count()
				r.Advance(e.End, o)
			}
		}
		missing := w.compare(l, r, h, commits)
		if g := r.Ledger(); !g.Balanced() || g.Pending != 0 || g.Lost() != 0 || missing != 0 {
			w.t.Errorf("%s: %s: %d samples are missing, ledger %+v", what, name, missing, g)
		}
		if err := r.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

// A savepoint may become anything: no target loses a sample by it.
func TestOpenAfterSavepointDamage(t *testing.T) {
	w := writeLog(t)
	own, other := w.saves["half"], w.saves["all"]
	slots := func(a, b []byte) []byte {
		return append(bytes.Clone(a[:min(len(a), slotSize)]), b[min(len(b), slotSize):]...)
	}
	garbage := make([]byte, 2*slotSize)
	rng := rand.New(rand.NewPCG(73, 0))
	for i := range garbage {
		garbage[i] = byte(rng.Uint32())
	}
	zeros := make([]byte, 2*slotSize)
	for what, file := range map[string][]byte{
		"empty": {}, "ten bytes": own[:10], "one slot": own[:slotSize], "one slot and a bit": own[:slotSize+20],
		"zeros": zeros, "garbage": garbage, "another target's": other, "a segment": w.bytes(1),
		"zeros first": slots(zeros, own), "zeros last": slots(own, zeros),
		"garbage first": slots(garbage, own), "garbage last": slots(own, garbage),
		"another target's first": slots(other, own), "another target's last": slots(own, other),
		"slots swapped": append(bytes.Clone(own[slotSize:]), own[:slotSize]...),
		"twice":         append(bytes.Clone(own), own...),
	} {
		w.keeps(what, bytes.Clone(file))
	}
	var places []int
	for slot := range 2 {
		for at := range 600 {
			places = append(places, slot*slotSize+at)
		}
	}
	sampled(t, len(places), 100, func(i int) {
		b := bytes.Clone(own)
		b[places[i]] ^= 1 << rng.IntN(8)
		w.keeps(fmt.Sprintf("byte %d", places[i]), b)
	})
}

// A newer format is refused by name, wherever it is met, and nothing is changed.
func TestOpenRefusesNewerFormat(t *testing.T) {
	w := writeLog(t)
	newer := func(n int) []byte {
		h, err := readHeader(fileTailOf(w), segmentRef{Number: n, Size: pageSize})
		if err != nil || h.Version == 0 {
			t.Fatalf("header of segment %d: %+v, %v", n, h, err)
		}
		was := h
		h.Version++
		var e encoder
		e.reset(0)
		e.header(h)
		b := bytes.Clone(w.bytes(n))
		size := len(e.pages.buf)
		e.reset(0)
		if e.header(was); !bytes.Equal(e.pages.buf, b[:size]) {
			t.Fatal("the header is not what the test takes it for")
		}
		e.reset(0)
		e.header(h)
		copy(b, e.pages.buf)
		return b
	}
	slot := bytes.Clone(w.saves["half"])
	st, _, err := (&savepointFile{name: "half", f: &memFile{d: newMemDir(), i: &inode{data: slot}}}).load()
	if err != nil {
		t.Fatal(err)
	}
	b, err := appendSlot(nil, 99, st)
	if err != nil {
		t.Fatal(err)
	}
	b[4] = savepointVersion + 1
	fixChecksum(b, len(b)-4)
	copy(slot, b)
	harms := []harm{{what: "savepoint", saves: map[string][]byte{"half": slot}}}
	for _, n := range []int{0, 1, 3} {
		name := segmentName(n)
		harms = append(harms, harm{what: name, segment: map[string][]byte{name: newer(n)}})
	}
	for _, h := range harms {
		segments, saves := w.dirs(h)
		l, err := Open(w.options(segments, saves))
		if err == nil {
			_ = l.Close()
			t.Errorf("%s: opened", h.what)
			continue
		}
		if !strings.Contains(err.Error(), h.what[:8]) || !strings.Contains(err.Error(), "newer hwsagent") {
			t.Errorf("%s: the error is %q", h.what, err)
		}
		for name, b := range w.segments {
			if h.segment[name] == nil && !bytes.Equal(segments.entries[name].data, b) {
				t.Errorf("%s: %s was changed", h.what, name)
			}
		}
		if len(segments.entries) != len(w.segments) || len(saves.entries) != len(w.saves) {
			t.Errorf("%s: files came or went", h.what)
		}
	}
}

func fileTailOf(w *writtenLog) *fileTail {
	segments, _ := w.dirs(harm{})
	return &fileTail{dir: segments}
}
