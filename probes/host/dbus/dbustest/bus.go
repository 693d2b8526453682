// Package dbustest is a message bus for tests, with one program on it. It shares no code with package dbus.
package dbustest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Request is a method call that has arrived.
type Request struct {
	Path, Interface, Member string
	Args                    []string
	serial                  uint32
	sender                  string
}

// Answer is what a call gets.
type Answer struct {
	Error     string        // the name of an error, instead of a result
	Signature string        // of the body
	Body      func(*Writer) // nil: empty
	Raw       []byte        // sent as it is instead of a message
	Silent    bool          // nothing is sent
}

// Bus is a bus of its own on a Unix socket.
type Bus struct {
	Path   string // of the socket
	Order  binary.AppendByteOrder
	Refuse bool // lets no user in
	answer func(Request) Answer

	mu       sync.Mutex
	requests []Request
}

// New starts a bus whose program gives these answers. It ends with the test.
func New(t testing.TB, answer func(Request) Answer) *Bus {
	t.Helper()
	b := &Bus{Path: filepath.Join(t.TempDir(), "bus"), Order: binary.LittleEndian, answer: answer}
	l, err := net.Listen("unix", b.Path)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			all.Go(func() {
				b.serve(conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return b
}

// Requests are the calls so far.
func (b *Bus) Requests() []Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Request(nil), b.requests...)
}

// serve is a connection of a client, until it ends.
func (b *Bus) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	if err := b.letIn(conn, in); err != nil {
		return
	}
	for serial := uint32(1); ; serial++ {
		r, err := readCall(in)
		if err != nil {
			return
		}
		b.mu.Lock()
		b.requests = append(b.requests, r)
		b.mu.Unlock()
		var a Answer
		var out []byte
		if r.Member == "Hello" {
			a = Answer{Signature: "s", Body: func(w *Writer) { w.String(":1.7") }}
			// A signal comes first, as a bus may send it.
			out = b.message(4, serial, Request{}, Answer{Signature: "s", Body: func(w *Writer) { w.String(":1.7") }})
		} else {
			a = b.answer(r)
		}
		switch {
		case a.Silent:
			continue
		case a.Raw != nil:
			out = a.Raw
		case a.Error != "":
			out = b.message(3, serial, r, a)
		default:
			out = append(out, b.message(2, serial, r, a)...)
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

func (b *Bus) letIn(conn net.Conn, in *bufio.Reader) error {
	if zero, err := in.ReadByte(); err != nil || zero != 0 {
		return fmt.Errorf("the first byte is %d, %w", zero, err)
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		reply := "ERROR\r\n"
		switch {
		case strings.HasPrefix(line, "BEGIN"):
			return nil
		case strings.HasPrefix(line, "AUTH EXTERNAL ") && b.Refuse:
			reply = "REJECTED EXTERNAL\r\n"
		case strings.HasPrefix(line, "AUTH EXTERNAL\r"): // the user comes with the next line
			reply = "DATA\r\n"
		case strings.HasPrefix(line, "AUTH EXTERNAL "), strings.HasPrefix(line, "DATA"):
			reply = "OK 0123456789abcdef0123456789abcdef\r\n"
		case strings.HasPrefix(line, "AUTH"): // which ways there are
			reply = "REJECTED EXTERNAL\r\n"
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return err
		}
	}
}

// message is a message of this kind, in reply to r.
func (b *Bus) message(kind byte, serial uint32, r Request, a Answer) []byte {
	body := &Writer{order: b.Order}
	if a.Body != nil {
		a.Body(body)
	}
	mark := byte('l')
	if b.Order.String() == binary.BigEndian.String() {
		mark = 'B'
	}
	w := &Writer{order: b.Order, b: []byte{mark, kind, 0, 1}}
	w.Uint32(uint32(len(body.b)))
	w.Uint32(serial)
	w.Structs(func(element func()) {
		field := func(code byte, sig string, write func()) {
			element()
			w.b = append(w.b, code)
			w.signature(sig)
			write()
		}
		if kind == 4 {
			field(1, "o", func() { w.String("/org/freedesktop/DBus") })
			field(2, "s", func() { w.String("org.freedesktop.DBus") })
			field(3, "s", func() { w.String("NameAcquired") })
		} else {
			field(5, "u", func() { w.Uint32(r.serial) })
		}
		if kind == 3 {
			field(4, "s", func() { w.String(a.Error) })
		}
		if a.Signature != "" {
			field(8, "g", func() { w.signature(a.Signature) })
		}
		field(7, "s", func() { w.String("org.freedesktop.DBus") })
		if r.sender != "" {
			field(6, "s", func() { w.String(r.sender) })
		}
	})
	w.align(8)
	return append(w.b, body.b...)
}

// readCall reads a little-endian method call whose arguments are strings.
func readCall(in io.Reader) (Request, error) {
	var r Request
	fixed := make([]byte, 16)
	if _, err := io.ReadFull(in, fixed); err != nil {
		return r, err
	}
	if fixed[0] != 'l' || fixed[3] != 1 {
		return r, errors.New("not a message that this bus reads")
	}
	order := binary.LittleEndian
	r.serial = order.Uint32(fixed[8:])
	fields, body := int(order.Uint32(fixed[12:])), int(order.Uint32(fixed[4:]))
	all := make([]byte, (fields+7)/8*8+body)
	if _, err := io.ReadFull(in, all); err != nil {
		return r, err
	}
	text := func(b []byte) (string, int) { // and how long it is with its length and zero
		n := int(order.Uint32(b))
		return string(b[4 : 4+n]), 4 + n + 1
	}
	for at := 0; at < fields; {
		at = (at + 7) / 8 * 8
		code, sig := all[at], string(all[at+2:at+3])
		at += 4
		switch sig {
		case "u":
			at += 4
		case "g":
			at += int(all[at]) + 2
		default:
			s, n := text(all[at:])
			at += n
			switch code {
			case 1:
				r.Path = s
			case 2:
				r.Interface = s
			case 3:
				r.Member = s
			case 7:
				r.sender = s
			}
		}
	}
	rest := all[(fields+7)/8*8:]
	for at := 0; at < body; {
		at = (at + 3) / 4 * 4
		s, n := text(rest[at:])
		r.Args = append(r.Args, s)
		at += n
	}
	return r, nil
}

// Writer writes values in D-Bus' format.
type Writer struct {
	order binary.AppendByteOrder
	b     []byte
}

func (w *Writer) align(n int) {
	for len(w.b)%n != 0 {
		w.b = append(w.b, 0)
	}
}

// Uint32 writes a value of type u, i or b.
func (w *Writer) Uint32(v uint32) {
	w.align(4)
	w.b = w.order.AppendUint32(w.b, v)
}

// Uint64 writes a value of type t or x.
func (w *Writer) Uint64(v uint64) {
	w.align(8)
	w.b = w.order.AppendUint64(w.b, v)
}

// String writes a value of type s or o.
func (w *Writer) String(s string) {
	w.Uint32(uint32(len(s)))
	w.b = append(append(w.b, s...), 0)
}

func (w *Writer) signature(s string) {
	w.b = append(append(append(w.b, byte(len(s))), s...), 0)
}

// Variant writes a value of type v that holds a string, bool, uint32, int32, uint64 or int64.
func (w *Writer) Variant(v any) {
	switch v := v.(type) {
	case string:
		w.signature("s")
		w.String(v)
	case bool:
		w.signature("b")
		w.Uint32(map[bool]uint32{true: 1}[v])
	case uint32:
		w.signature("u")
		w.Uint32(v)
	case int32:
		w.signature("i")
		w.Uint32(uint32(v))
	case uint64:
		w.signature("t")
		w.Uint64(v)
	case int64:
		w.signature("x")
		w.Uint64(uint64(v))
	case byte:
		w.signature("y")
		w.b = append(w.b, v)
	default:
		panic(fmt.Sprintf("a variant cannot hold %T here", v))
	}
}

// Structs writes an array of structures: write calls element before each.
func (w *Writer) Structs(write func(element func())) {
	w.Uint32(0)
	length := len(w.b) - 4
	w.align(8)
	start := len(w.b)
	write(func() { w.align(8) })
	copy(w.b[length:], w.order.AppendUint32(nil, uint32(len(w.b)-start)))
}
