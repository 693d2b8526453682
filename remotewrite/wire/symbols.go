package wire

import (
	"encoding/binary"
	"hash/maphash"
)

// symbols is the symbol table of one request of remote write 2.0: each distinct text has a
// number, by which the rest of the request refers to it. It lasts only as long as its
// request, so it keeps nothing for series that come and go; reset takes constant time
// for the slots and reuses their memory. newSymbols makes one. Not safe for concurrent use.
//
// Invariant: texts[0] = "", as the specification demands; at most half of slots is taken.
type symbols struct {
	seed  maphash.Seed
	slots []symbolSlot // a power of two of them
	turn  uint32       // a slot of another turn is empty
	texts []string     // by number
}

type symbolSlot struct {
	hash uint64
	turn uint32
	ref  uint32
}

func newSymbols() *symbols {
	return &symbols{seed: maphash.MakeSeed(), slots: make([]symbolSlot, 64), texts: []string{""}}
}

// reset removes all texts except the empty one.
func (s *symbols) reset() {
	clear(s.texts) // they may belong to removed series
	s.texts = s.texts[:1]
	if s.turn++; s.turn == 0 {
		clear(s.slots)
		s.turn = 1
	}
}

// ref returns the number of a text.
func (s *symbols) ref(text string) uint32 {
	if text == "" {
		return 0
	}
	hash := maphash.String(s.seed, text)
	mask := uint64(len(s.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		switch slot := &s.slots[i]; {
		case slot.turn != s.turn:
			*slot = symbolSlot{hash, s.turn, uint32(len(s.texts))}
			s.texts = append(s.texts, text)
			if 2*len(s.texts) > len(s.slots) {
				s.grow()
			}
			return uint32(len(s.texts) - 1)
		case slot.hash == hash && s.texts[slot.ref] == text:
			return slot.ref
		}
	}
}

func (s *symbols) grow() {
	old := s.slots
	s.slots = make([]symbolSlot, 2*len(old))
	mask := uint64(len(s.slots) - 1)
	for _, slot := range old {
		if slot.turn != s.turn {
			continue
		}
		i := slot.hash & mask
		for s.slots[i].turn == s.turn {
			i = (i + 1) & mask
		}
		s.slots[i] = slot
	}
}

// appendTo appends the table as the field symbols of a Request.
func (s *symbols) appendTo(dst []byte) []byte {
	for _, text := range s.texts {
		dst = binary.AppendUvarint(append(dst, keySymbol), uint64(len(text)))
		dst = append(dst, text...)
	}
	return dst
}
