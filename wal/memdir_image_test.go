package wal

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"hwsagent/wal/internal/segment"
)

// image is what a file holds, as pieces that nothing ever changes: a copy of a file costs as much as a list of its pieces, and what
// was preallocated costs nothing. Its zero value is an empty file.
type image struct {
	pieces []*imagePiece // nil: zeros
	size   int           // bytes; the last piece is zero behind them
}

const imagePieceSize = 1 << 10

type imagePiece [imagePieceSize]byte

func imageOf(b []byte) (m image) {
	m.writeAt(b, 0)
	return m
}

// copy is an image that changes by itself.
func (m *image) copy() image { return image{slices.Clone(m.pieces), m.size} }

// bytes is a copy of what the file holds.
func (m *image) bytes() []byte {
	b := make([]byte, m.size)
	m.readAt(b, 0)
	return b
}

// edit changes the bytes of the file, whose length stays.
func (m *image) edit(change func(b []byte)) {
	b := m.bytes()
	change(b)
	*m = imageOf(b)
}

// readAt reads what there is, and returns how much.
func (m *image) readAt(p []byte, off int) (n int) {
	p = p[:max(0, min(len(p), m.size-off))]
	for n < len(p) {
		piece, at := (off+n)/imagePieceSize, (off+n)%imagePieceSize
		part := p[n:min(len(p), n+imagePieceSize-at)]
		if have := m.pieces[piece]; have != nil {
			copy(part, have[at:])
		} else {
			clear(part)
		}
		n += len(part)
	}
	return n
}

func (m *image) writeAt(p []byte, off int) {
	m.extend(off + len(p))
	for n := 0; n < len(p); {
		piece, at := (off+n)/imagePieceSize, (off+n)%imagePieceSize
		part := p[n:min(len(p), n+imagePieceSize-at)]
		n += len(part)
		was := m.pieces[piece]
		if zeros := segment.AllZero(part); zeros && was == nil {
			continue
		} else if zeros && len(part) == imagePieceSize {
			m.pieces[piece] = nil
			continue
		}
		next := new(imagePiece)
		if was != nil {
			*next = *was
		}
		copy(next[at:], part)
		m.pieces[piece] = next
	}
}

// extend makes the file n bytes long at least, with zeros.
func (m *image) extend(n int) {
	m.size = max(m.size, n)
	if add := (m.size+imagePieceSize-1)/imagePieceSize - len(m.pieces); add > 0 {
		m.pieces = append(m.pieces, make([]*imagePiece, add)...)
	}
}

// truncate makes the file n bytes long.
func (m *image) truncate(n int) {
	if m.extend(n); n == m.size {
		return
	}
	m.size = n
	m.pieces = m.pieces[:(n+imagePieceSize-1)/imagePieceSize]
	if at := n % imagePieceSize; at > 0 && m.pieces[n/imagePieceSize] != nil {
		next := *m.pieces[n/imagePieceSize]
		clear(next[at:])
		m.pieces[n/imagePieceSize] = &next
	}
}

// noBytes is what slice returns of what was preallocated.
var noBytes [256 << 10]byte

// slice is a part of what the file holds. It is not to be changed.
func (m *image) slice(from, to int) []byte {
	blank := to-from <= len(noBytes)
	for piece := from / imagePieceSize; blank && piece*imagePieceSize < to; piece++ {
		blank = m.pieces[piece] == nil
	}
	if blank {
		return noBytes[:to-from]
	}
	b := make([]byte, to-from)
	m.readAt(b, from)
	return b
}

// memory is about how much it takes, in bytes, but for the pieces in counted, to which it adds its own.
func (m *image) memory(counted map[*imagePiece]bool) int {
	const pointer = 8
	n := pointer * cap(m.pieces)
	for _, piece := range m.pieces {
		if piece != nil && !counted[piece] {
			counted[piece] = true
			n += imagePieceSize
		}
	}
	return n
}

// An image is what a slice of bytes would be, and a copy of it does not change with it.
func TestImage(t *testing.T) {
	rng := rand.New(rand.NewPCG(testSeed(t), 0))
	var m image
	var want []byte
	kept := map[*image][]byte{}
	for range 3000 {
		off, p := rng.IntN(5*imagePieceSize), make([]byte, rng.IntN(2*imagePieceSize))
		for n := rng.IntN(len(p) + 1); n > 0 && rng.IntN(3) > 0; n-- {
			p[n-1] = byte(rng.IntN(256))
		}
		switch rng.IntN(4) {
		case 0:
			m.truncate(off)
			want = append(want, make([]byte, max(0, off-len(want)))...)[:off]
		case 1:
			c := m.copy()
			kept[&c] = bytes.Clone(want)
		default:
			m.writeAt(p, off)
			want = append(want, make([]byte, max(0, off+len(p)-len(want)))...)
			copy(want[off:], p)
		}
		if !bytes.Equal(m.bytes(), want) {
			t.Fatal("an image is not what was written")
		}
		if from := rng.IntN(len(want) + 1); from < len(want) {
			if to := from + rng.IntN(len(want)-from); !bytes.Equal(m.slice(from, to), want[from:to]) {
				t.Fatal("a part of an image is not what was written")
			}
		}
	}
	for c, want := range kept {
		if !bytes.Equal(c.bytes(), want) {
			t.Fatal("a copy has changed")
		}
	}
}
