package mutate

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

// Kind is one way to be wrong.
type Kind struct {
	Name string // unique among kinds used together
	Make func(rnd *rand.Rand) Script
}

// Content is one way in which the content of a message can be wrong.
type Content struct {
	Name string
	Make func(rnd *rand.Rand) Body
}

// Script is the behaviour of one side of a connection.
type Script struct {
	Steps []Step
	End   End
}

// Step writes bytes.
type Step struct {
	Bytes []byte
	Times int           // how often; 0 is once, [Endless] until the other side has gone
	Pause time.Duration // after each time
	// Raw writes the bytes to the TCP connection below TLS.
	Raw bool
}

// Endless is the Times of a step that never ends.
const Endless = -1

// End says what happens to the connection.
type End int

// The ends of a script.
const (
	GoOn      End = iota // the connection serves the next message
	Close                // it is closed
	Reset                // it is reset
	HalfClose            // only this side closes it, then as Hold
	Hold                 // it stays open, without further data, until the other side closes it
)

// Conn is the connection of a script.
type Conn struct {
	net.Conn              // with TLS, if there is any
	TCP      *net.TCPConn // below it
}

// maxWrite bounds how long one write may wait for the other side to read.
const maxWrite = 10 * time.Second

// Play plays a script. It returns false if the connection is no longer usable. The caller ends it by closing the
// connection.
func (s Script) Play(c Conn) bool {
	for _, step := range s.Steps {
		if !step.play(c) {
			return false
		}
	}
	switch s.End {
	case GoOn:
		return true
	case Reset:
		_ = c.TCP.SetLinger(0) // fails only where the connection is gone
	case HalfClose:
		_ = c.TCP.CloseWrite() // likewise
		fallthrough
	case Hold:
		_, _ = io.Copy(io.Discard, c.TCP)
	case Close:
	}
	_ = c.TCP.Close()
	return false
}

func (s Step) play(c Conn) bool {
	to := c.Conn
	if s.Raw {
		to = c.TCP
	}
	for n := 0; n < max(1, s.Times) || s.Times == Endless; n++ {
		_ = c.TCP.SetWriteDeadline(time.Now().Add(maxWrite)) // fails only where the connection is gone
		if _, err := to.Write(s.Bytes); err != nil {
			return false
		}
		if s.Pause > 0 {
			time.Sleep(s.Pause) // the fault's own schedule
		}
	}
	return true
}

// Len returns how many bytes a script writes; for an endless one, in its first round.
func (s Script) Len() (n int) {
	for _, step := range s.Steps {
		n += len(step.Bytes) * max(1, step.Times)
	}
	return n
}

// Piece is a byte string, repeated Times times. Times 0 is once.
type Piece struct {
	Bytes []byte
	Times int
}

// Body is the content of a message, piece by piece.
type Body []Piece

// Of returns a body of one piece.
func Of(b []byte) Body { return Body{{Bytes: b}} }

// Text returns a body of one piece.
func Text(s string) Body { return Of([]byte(s)) }

// Len returns its length in bytes.
func (b Body) Len() (n int) {
	for _, p := range b {
		n += len(p.Bytes) * max(1, p.Times)
	}
	return n
}

// Bytes returns all its bytes.
func (b Body) Bytes() []byte {
	all := make([]byte, 0, b.Len())
	for _, p := range b {
		for range max(1, p.Times) {
			all = append(all, p.Bytes...)
		}
	}
	return all
}

// Gzip returns the body compressed.
func (b Body) Gzip() Body {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level is one
	for _, p := range b {
		for range max(1, p.Times) {
			_, _ = z.Write(p.Bytes) // into memory
		}
	}
	_ = z.Close()
	return Of(out.Bytes())
}

// Plain returns a kind for each content, of the content alone.
func Plain(contents []Content) (all []Kind) {
	for _, c := range contents {
		all = append(all, Kind{"content: " + c.Name, func(rnd *rand.Rand) Script { return Script{Steps: c.Make(rnd).steps()} }})
	}
	return all
}

func (b Body) steps() (all []Step) {
	for _, p := range b {
		if len(p.Bytes) > 0 {
			all = append(all, Step{Bytes: p.Bytes, Times: p.Times})
		}
	}
	return all
}
