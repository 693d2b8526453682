package mutate

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// Protobuf returns the ways in which a message of protobuf can be wrong; valid makes a correct one.
func Protobuf(valid func(rnd *rand.Rand) []byte) []Content {
	return append(Bytes(valid), trees(protobuf{}, valid)...)
}

// BER returns the ways in which a message of ASN.1 in BER can be wrong.
func BER(valid func(rnd *rand.Rand) []byte) []Content {
	return append(Bytes(valid), trees(ber{}, valid)...)
}

// element is an element of a message: a tag and its content.
type element struct {
	tag  []byte
	data []byte
	// inner are the elements within data, nil if there are none.
	inner []*element
	// framed means that a length precedes the data. A length that is not nil replaces the correct one.
	framed bool
	length []byte
}

// grammar says how messages consist of elements.
type grammar interface {
	// parse returns nil if the bytes are not elements.
	parse(b []byte, depth int) []*element
	length(n uint64) []byte
	extremeTag(rnd *rand.Rand) []byte
	extremeLength(rnd *rand.Rand) []byte
}

// maxTree bounds the depth of parsed messages.
const maxTree = 12

func encode(g grammar, all []*element) (out []byte) {
	for _, e := range all {
		data := e.data
		if e.inner != nil {
			data = encode(g, e.inner)
		}
		out = append(out, e.tag...)
		if e.framed {
			length := e.length
			if length == nil {
				length = g.length(uint64(len(data)))
			}
			out = append(out, length...)
		}
		out = append(out, data...)
	}
	return out
}

// flat returns all elements of a tree.
func flat(all []*element) (out []*element) {
	for _, e := range all {
		out = append(append(out, e), flat(e.inner)...)
	}
	return out
}

// trees returns the ways in which the structure of a message can be wrong: the lengths of all elements except the
// changed one are correct.
func trees(g grammar, valid func(rnd *rand.Rand) []byte) []Content {
	one := func(name string, change func(rnd *rand.Rand, e *element)) Content {
		return Content{name, func(rnd *rand.Rand) Body {
			b := valid(rnd)
			root := g.parse(b, maxTree)
			all := flat(root)
			if len(all) == 0 {
				return Of(Damage(rnd, b))
			}
			change(rnd, all[rnd.IntN(len(all))])
			return Of(encode(g, root))
		}}
	}
	leaf := func(e *element, data []byte) { e.data, e.inner = data, nil }
	content := func(e *element) []byte {
		if e.inner != nil {
			return encode(g, e.inner)
		}
		return e.data
	}
	return []Content{
		one("another tag", func(rnd *rand.Rand, e *element) { e.tag = g.extremeTag(rnd) }),
		one("a wrong length", func(rnd *rand.Rand, e *element) { e.length, e.framed = g.extremeLength(rnd), true }),
		one("a length that is one off", func(rnd *rand.Rand, e *element) {
			e.length, e.framed = g.length(uint64(max(0, len(content(e))+pick(rnd, -1, 1)))), true
		}),
		one("an element without data", func(_ *rand.Rand, e *element) { leaf(e, nil) }),
		one("an element with other data", func(rnd *rand.Rand, e *element) {
			leaf(e, pick(rnd, noise(rnd), make([]byte, 8), slices.Repeat([]byte{0xff}, 1+rnd.IntN(20)), slices.Repeat([]byte{0x80}, 1+rnd.IntN(2000))))
		}),
		one("an element many times", func(rnd *rand.Rand, e *element) {
			again := &element{tag: e.tag, data: content(e), framed: e.framed}
			whole := encode(g, []*element{again})
			e.tag, e.framed = nil, false
			leaf(e, slices.Repeat(whole, 1+rnd.IntN(1+(64<<10)/max(1, len(whole)))))
		}),
		one("an element left out", func(_ *rand.Rand, e *element) {
			e.tag, e.framed = nil, false
			leaf(e, nil)
		}),
		one("an element inside itself", func(rnd *rand.Rand, e *element) {
			data := content(e)
			for range 1 + rnd.IntN(200) {
				data = slices.Concat(e.tag, g.length(uint64(len(data))), data)
			}
			leaf(e, data)
		}),
	}
}

// protobuf is https://protobuf.dev/programming-guides/encoding.
type protobuf struct{}

func (p protobuf) parse(b []byte, depth int) (all []*element) {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 == 0 {
			return nil
		}
		e := &element{tag: b[:n]}
		b = b[n:]
		size := 0
		switch tag & 7 {
		case 0:
			if _, size = binary.Uvarint(b); size <= 0 {
				return nil
			}
		case 1:
			size = 8
		case 2:
			length, n := binary.Uvarint(b)
			if n <= 0 || length > uint64(len(b)-n) {
				return nil
			}
			b, size, e.framed = b[n:], int(length), true
		case 5:
			size = 4
		default:
			return nil
		}
		if size > len(b) {
			return nil
		}
		e.data, b = b[:size], b[size:]
		if e.framed && depth > 0 {
			e.inner = p.parse(e.data, depth-1)
		}
		all = append(all, e)
	}
	return all
}

func (protobuf) length(n uint64) []byte { return binary.AppendUvarint(nil, n) }

func (protobuf) extremeTag(rnd *rand.Rand) []byte {
	field, wire := pick(rnd, uint64(0), 1, 2, 3, 15, 16, 19000, 1<<29-1), rnd.Uint64N(8)
	return pick(rnd, binary.AppendUvarint(nil, field<<3|wire), binary.AppendUvarint(nil, 1<<63|wire), slices.Repeat([]byte{0x80}, 11))
}

func (protobuf) extremeLength(rnd *rand.Rand) []byte {
	return pick(rnd, slices.Repeat([]byte{0xff}, 9), slices.Repeat([]byte{0xff}, 11), binary.AppendUvarint(nil, 1<<rnd.IntN(64)), binary.AppendUvarint(nil, 1<<63), []byte{0x80, 0x80, 0})
}

// ber is ITU-T X.690, with tags of one byte, as SNMP has them (RFC 3417, section 8).
type ber struct{}

func (p ber) parse(b []byte, depth int) (all []*element) {
	const constructed = 0x20
	for len(b) > 0 {
		if len(b) < 2 {
			return nil
		}
		e := &element{tag: b[:1], framed: true}
		size := int(b[1])
		b = b[2:]
		if size >= 0x80 {
			n := size & 0x7f
			if n == 0 || n > 3 || n > len(b) {
				return nil
			}
			size = 0
			for _, c := range b[:n] {
				size = size<<8 | int(c)
			}
			b = b[n:]
		}
		if size > len(b) {
			return nil
		}
		e.data, b = b[:size], b[size:]
		if e.tag[0]&constructed != 0 && depth > 0 {
			e.inner = p.parse(e.data, depth-1)
		}
		all = append(all, e)
	}
	return all
}

func (ber) length(n uint64) []byte {
	if n < 0x80 {
		return []byte{byte(n)}
	}
	return []byte{0x83, byte(n >> 16), byte(n >> 8), byte(n)}
}

// extremeTag: the types of SNMP, its messages, its exceptions, and what is none of these.
func (ber) extremeTag(rnd *rand.Rand) []byte {
	return []byte{pick(rnd, byte(0), 1, 2, 3, 4, 5, 6, 0x30, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x78, 0x79, 0x80, 0x81, 0x82, 0xa0, 0xa2, 0xa5, 0xa8, 0x1f, 0xff)}
}

func (ber) extremeLength(rnd *rand.Rand) []byte {
	return pick(rnd, []byte{0x80}, []byte{0x84, 0xff, 0xff, 0xff, 0xff}, []byte{0x84, 0x7f, 0xff, 0xff, 0xff}, []byte{0x88, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, []byte{0x82, 0xff, 0xff}, []byte{0xff}, []byte{0x7f}, []byte{0x89, 1, 2}, []byte{0x82, 0, 1})
}
