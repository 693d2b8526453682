package dbus

import (
	"encoding/binary"
	"fmt"
)

// Reader reads the body of a message in the order of its types. The first value that is not there, or is not as
// specified, is its error; from then on all values are zero.
type Reader struct {
	order binary.ByteOrder
	b     []byte
	at    int
	sig   string
	err   error
}

// Signature returns the types of the body, such as "a(ssssssouso)". A caller reads only what it expects.
func (r *Reader) Signature() string { return r.sig }

// Err returns why values could not be read; it wraps [ErrProtocol].
func (r *Reader) Err() error { return r.err }

func (r *Reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s, at byte %d", ErrProtocol, fmt.Sprintf(format, args...), r.at)
	}
}

// take returns the next n bytes, or nil.
func (r *Reader) take(n uint32) []byte {
	if r.err == nil && uint64(n) > uint64(len(r.b)-r.at) {
		r.fail("a value of %d bytes ends behind the message", n)
	}
	if r.err != nil {
		return nil
	}
	b := r.b[r.at : r.at+int(n)]
	r.at += int(n)
	return b
}

// align goes on to a multiple of n, which is a power of two.
func (r *Reader) align(n int) {
	r.take(uint32(-r.at & (n - 1))) // #nosec G115 -- less than n
}

func (r *Reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// Uint32 reads a value of type u, i or b.
func (r *Reader) Uint32() uint32 {
	r.align(4)
	if b := r.take(4); b != nil {
		return r.order.Uint32(b)
	}
	return 0
}

// Uint64 reads a value of type t or x.
func (r *Reader) Uint64() uint64 {
	r.align(8)
	if b := r.take(8); b != nil {
		return r.order.Uint64(b)
	}
	return 0
}

// String reads a value of type s or o. It may hold any bytes.
func (r *Reader) String() string {
	n := r.Uint32()
	s := string(r.take(n))
	if r.byte() != 0 {
		r.fail("a string does not end with a zero byte")
	}
	return s
}

func (r *Reader) signature() string {
	n := r.byte()
	s := string(r.take(uint32(n)))
	if r.byte() != 0 {
		r.fail("a signature does not end with a zero byte")
	}
	return s
}

// Structs reads an array of structures: each is called at the beginning of each structure and reads it to its end.
func (r *Reader) Structs(each func()) {
	n := r.Uint32()
	r.align(8)
	if r.err == nil && uint64(n) > uint64(len(r.b)-r.at) {
		r.fail("an array of %d bytes ends behind the message", n)
	}
	for end := r.at + int(n); r.err == nil && r.at < end; {
		before := r.at
		if r.align(8); r.err == nil {
			each()
		}
		if r.err == nil && (r.at > end || r.at == before) {
			r.fail("a structure ends behind its array")
		}
	}
}

// Variant reads a value of type v that holds a number or a text: a float64 for b, i, u, x and t, and a string for s, o.
// Other types are an error.
func (r *Reader) Variant() any {
	switch typ := r.signature(); typ {
	case "s", "o":
		return r.String()
	case "u", "b":
		return float64(r.Uint32())
	case "i":
		return float64(int32(r.Uint32())) // #nosec G115 -- the same bits
	case "t":
		return float64(r.Uint64())
	case "x":
		return float64(int64(r.Uint64())) // #nosec G115 -- the same bits
	default:
		r.fail("a value has the type %q, which is not read here", typ)
		return nil
	}
}
