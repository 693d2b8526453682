package wal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hwsagent/wal/internal/segment"
)

// keeps opens the log with damaged savepoint files, and checks that each target gets
// everything that it has not acknowledged.
func (w *writtenLog) keeps(what string, files map[string][]byte) {
	w.t.Helper()
	h := harm{what: what, saves: files, touched: func(writtenCommit) bool { return false }}
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
		if g := r.Ledger(); !g.Balanced() || g.Pending != 0 || g.GivenUp() != 0 || missing != 0 {
			w.t.Errorf("%s: %s: %d samples are missing, ledger %+v", what, name, missing, g)
		}
		if err := r.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

// A savepoint file may become anything: no target loses a sample by it.
func TestOpenAfterSavepointDamage(t *testing.T) {
	w := writeLog(t)
	newest := w.newest()
	rng := rand.New(rand.NewPCG(73, 0))
	for _, name := range savepointNames {
		own, other := w.saves[name], w.saves[savepointNames[1-slices.Index(savepointNames[:], name)]]
		garbage := make([]byte, len(own))
		for i := range garbage {
			garbage[i] = byte(rng.Uint32())
		}
		for what, file := range map[string][]byte{
			"empty": {}, "ten bytes": own[:10], "half": own[:len(own)/2], "a page": own[:4096], "a slot and a bit": own[:slotSize+20],
			"garbage": garbage, "zeros": make([]byte, len(own)), "the other one": other, "a segment": w.bytes(1), "gone": nil,
			"zeros first": slices.Concat(make([]byte, 4096), own[4096:]), "garbage first": slices.Concat(garbage[:4096], own[4096:]),
			"twice": slices.Concat(own, own),
		} {
			w.keeps(name+" "+what, map[string][]byte{name: bytes.Clone(file)})
		}
	}
	for what, file := range map[string][]byte{"gone": nil, "empty": {}, "garbage": bytes.Repeat([]byte("garbage "), 9999), "zeros": make([]byte, minSavepointFile)} {
		w.keeps("both "+what, map[string][]byte{savepointNames[0]: bytes.Clone(file), savepointNames[1]: bytes.Clone(file)})
	}
	used := bytes.LastIndexFunc(w.saves[newest], func(r rune) bool { return r != 0 }) + 1
	sampled(t, used, 100, func(at int) {
		b := bytes.Clone(w.saves[newest])
		b[at] ^= 1 << rng.IntN(8)
		w.keeps(fmt.Sprintf("byte %d", at), map[string][]byte{newest: b})
	})
}

// A newer format is refused by name, wherever it is met, and nothing is changed.
func TestOpenRefusesNewerFormat(t *testing.T) {
	w := writeLog(t)
	newer := func(n int) []byte {
		h, err := readHeader(new(segment.Reader), fileTailOf(w), n, segment.PageSize)
		if err != nil || h.Version == 0 {
			t.Fatalf("header of segment %d: %+v, %v", n, h, err)
		}
		was := h
		h.Version++
		var e encoder
		e.reset(n, 0)
		e.header(h)
		b := bytes.Clone(w.bytes(n))
		size := len(e.pages.Buf)
		e.reset(n, 0)
		if e.header(was); !bytes.Equal(e.pages.Buf, b[:size]) {
			t.Fatal("the header is not what the test takes it for")
		}
		e.reset(n, 0)
		e.header(h)
		copy(b, e.pages.Buf)
		return b
	}
	var harms []harm
	for _, name := range savepointNames {
		b := bytes.Clone(w.saves[name])
		setFormat(b, 1)
		harms = append(harms, harm{what: name, saves: map[string][]byte{name: b}})
	}
	for _, n := range []int{0, 1, 3} {
		name := segment.Name(n)
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
			if h.segment[name] == nil && !bytes.Equal(segments.entries[name].data.bytes(), b) {
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
