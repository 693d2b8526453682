package wal

import (
	"encoding/binary"
	"hash/maphash"
	"iter"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/internal/refs"
	"hwsagent/wal/internal/segment"
)

// symbols gives numbers to label pairs, so that a series takes two or three bytes for each of its labels: most pairs are those
// of many series. It is safe for concurrent use.
type symbols struct {
	seed maphash.Seed

	mu       sync.RWMutex
	byText   *refs.Chains[symbol]
	byNumber refs.Slots[symbol]
	vacant   int // no number below is unused
}

// symbol is a label pair that has a number.
type symbol struct {
	text   string       // name and value as a record announces them, each after its length
	label  labels.Label // the same, for those who send them; shares the memory of text
	next   *symbol      // in symbols.byText
	number uint32
	uses   uint32 // by the label sets that are held; without uses it loses its number
}

// packed is a label set: the length of its announcement, and the numbers of its pairs in the order of the announcement, all as
// varints. It means these labels only as long as they are held. Each Series holds its labels until nothing can
// reach it (see seriesMap.leaveLocked), so whoever has one may use them. Of those that are held, equal ones have equal labels.
type packed string

func newSymbols() *symbols {
	y := &symbols{seed: maphash.MakeSeed()}
	y.byText = refs.NewChains(func(s *symbol) uint64 { return maphash.String(y.seed, s.text) }, func(s *symbol) **symbol { return &s.next })
	return y
}

// find appends the label set of an announcement to dst. It does not hold it, so the caller may only compare it with those that
// are held since before the call. ok is false if a pair has no number, or the announcement is not well-formed.
func (y *symbols) find(dst, announced []byte) (_ []byte, ok bool) {
	y.mu.RLock()
	defer y.mu.RUnlock()
	dst = binary.AppendUvarint(dst, uint64(len(announced)))
	d := segment.Decoder{B: announced}
	for n := d.Uvarint(); n > 0 && d.Err == nil; n-- {
		s := y.lookup(takePair(&d))
		if s == nil {
			return dst, false
		}
		dst = binary.AppendUvarint(dst, uint64(s.number))
	}
	return dst, d.End() == nil
}

// hold returns the label set of an announcement, which must be well-formed, and holds it.
func (y *symbols) hold(announced []byte) packed {
	y.mu.Lock()
	defer y.mu.Unlock()
	p := binary.AppendUvarint(make([]byte, 0, 64), uint64(len(announced)))
	d := segment.Decoder{B: announced}
	for n := d.Uvarint(); n > 0; n-- {
		text := takePair(&d)
		s := y.lookup(text)
		if s == nil {
			s = y.add(string(text))
		}
		s.uses++
		p = binary.AppendUvarint(p, uint64(s.number))
	}
	return packed(p)
}

// keep holds a label set once more.
func (y *symbols) keep(p packed) packed {
	y.mu.Lock()
	defer y.mu.Unlock()
	for s := range y.pairs(p) {
		s.uses++
	}
	return p
}

// release is the opposite of hold and keep.
func (y *symbols) release(p packed) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for s := range y.pairs(p) {
		if s.uses--; s.uses > 0 {
			continue
		}
		y.byText.Remove(s)
		y.byNumber.Put(int(s.number), nil)
		y.vacant = min(y.vacant, int(s.number))
	}
}

// lookup returns the pair with that text, nil if it has no number. y.mu must be held.
func (y *symbols) lookup(text []byte) *symbol {
	return y.byText.Find(maphash.Bytes(y.seed, text), func(s *symbol) bool { return s.text == string(text) })
}

// pairs yields the pairs of a label set that is held. y.mu must be held.
func (y *symbols) pairs(p packed) iter.Seq[*symbol] {
	return func(yield func(*symbol) bool) {
		for _, rest := cutNumber(string(p)); rest != ""; {
			var n int
			n, rest = cutNumber(rest)
			if !yield(y.byNumber.Get(n)) {
				return
			}
		}
	}
}

// add gives a number to a pair. y.mu must be held.
func (y *symbols) add(text string) *symbol {
	n := y.byNumber.Vacant(y.vacant) // small numbers are shorter, and the table shrinks at its end
	y.vacant = n + 1
	label, _ := cutPair(text)
	s := &symbol{text: text, label: label, number: uint32(n)} // #nosec G115 -- memory ends before 2^32 pairs
	y.byText.Add(s)
	y.byNumber.Put(n, s)
	return s
}

// announce appends the announcement of a label set to dst.
func (y *symbols) announce(dst []byte, p packed) []byte {
	y.mu.RLock()
	defer y.mu.RUnlock()
	count := uint64(0)
	for range y.pairs(p) {
		count++
	}
	dst = binary.AppendUvarint(dst, count)
	for s := range y.pairs(p) {
		dst = append(dst, s.text...)
	}
	return dst
}

// is reports whether the announcement is that of a label set.
func (y *symbols) is(p packed, announced []byte) bool {
	if p.size() != len(announced) {
		return false
	}
	y.mu.RLock()
	defer y.mu.RUnlock()
	d := segment.Decoder{B: announced}
	d.Uvarint()
	for s := range y.pairs(p) {
		if string(d.Bytes(uint64(len(s.text)))) != s.text {
			return false
		}
	}
	return d.End() == nil
}

// labels appends the pairs of a label set to dst.
func (y *symbols) labels(dst []labels.Label, p packed) []labels.Label {
	y.mu.RLock()
	defer y.mu.RUnlock()
	for _, rest := cutNumber(string(p)); rest != ""; { // not by pairs: each sample that is sent comes here
		var n int
		n, rest = cutNumber(rest)
		dst = append(dst, y.byNumber.Get(n).label)
	}
	return dst
}

// value returns the value of a label, "" if there is none.
func (y *symbols) value(p packed, name string) string {
	y.mu.RLock()
	defer y.mu.RUnlock()
	for s := range y.pairs(p) {
		if s.label.Name == name {
			return s.label.Value
		}
	}
	return ""
}

// size is the length of the announcement, in bytes.
func (p packed) size() int {
	n, _ := cutNumber(string(p))
	return n
}

// cutNumber cuts a varint off the front of s, which begins with one.
func cutNumber(s string) (n int, rest string) {
	if s[0] < 0x80 {
		return int(s[0]), s[1:]
	}
	return cutLong(s)
}

// cutLong is cutNumber for a number of several bytes. It is a function of its own so that calls of cutNumber are inlined.
func cutLong(s string) (n int, rest string) {
	for i := range len(s) {
		n |= int(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			return n, s[i+1:]
		}
	}
	return n, ""
}

// cutPair cuts a label pair off the front of an announcement without its count. The label shares the memory of s.
func cutPair(s string) (l labels.Label, rest string) {
	n, s := cutNumber(s)
	l.Name, s = s[:n], s[n:]
	n, s = cutNumber(s)
	l.Value, rest = s[:n], s[n:]
	return l, rest
}

// takePair cuts a label pair off the front of an announcement, as the text of a symbol.
func takePair(d *segment.Decoder) []byte {
	all := d.B
	d.Bytes(d.Uvarint())
	d.Bytes(d.Uvarint())
	return all[:len(all)-len(d.B)]
}

// appendAnnouncement appends labels as a record announces them: how many there are, and each name and value after its length.
func appendAnnouncement(dst []byte, ls labels.Labels) []byte {
	dst = binary.AppendUvarint(dst, uint64(ls.Len())) // #nosec G115 -- a count
	ls.Range(func(l labels.Label) {
		dst = append(binary.AppendUvarint(dst, uint64(len(l.Name))), l.Name...)
		dst = append(binary.AppendUvarint(dst, uint64(len(l.Value))), l.Value...)
	})
	return dst
}
