package dbus

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzMessage: whatever a peer sends, a message is read in its bounds or is an error.
func FuzzMessage(f *testing.F) {
	f.Add(appendCall(nil, 1, Call{Destination: "a.b", Path: "/a", Interface: "a.b", Member: "C", Args: []string{"d", "e"}}))
	f.Add([]byte{'B', 2, 0, 1, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 16, 5, 1, 'u', 0, 0, 0, 0, 1, 8, 1, 'g', 0, 1, 'v', 0, 0, 1, 's', 0, 0, 0, 0, 0, 1, 'x', 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &Conn{in: bufio.NewReader(bytes.NewReader(b))}
		m, err := c.read()
		if err != nil {
			return
		}
		switch m.body.Signature() {
		case "v":
			m.body.Variant()
		default:
			n := 0
			m.body.Structs(func() { n += len(m.body.String()) })
			if n > len(b) {
				t.Errorf("%d bytes of text are in a message of %d", n, len(b))
			}
		}
	})
}

// TestCallsAreWellFormed: the reader accepts sent messages, wherever they are in a buffer.
func TestCallsAreWellFormed(t *testing.T) {
	c := Call{Destination: "org.example", Path: "/org", Interface: "org.example.I", Member: "M", Args: []string{"", "abc", "defg"}}
	for before := range 9 {
		b := appendCall(make([]byte, before), 77, c)[before:]
		if len(b)%8 != (4+1+3+4+3+1+4+4+1)%8 || binary.LittleEndian.Uint32(b[8:]) != 77 {
			t.Errorf("behind %d bytes: %d bytes", before, len(b))
		}
		m, err := (&Conn{in: bufio.NewReader(bytes.NewReader(b))}).read()
		if err != nil || m.kind != kindCall || m.body.Signature() != "sss" {
			t.Fatalf("behind %d bytes: %+v, %v", before, m, err)
		}
		if got := []string{m.body.String(), m.body.String(), m.body.String()}; got[1] != "abc" || got[2] != "defg" || m.body.Err() != nil {
			t.Errorf("behind %d bytes: %q, %v", before, got, m.body.Err())
		}
	}
}
