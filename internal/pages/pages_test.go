package pages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"
)

// Whatever a buffer had room for, and in whatever pieces a page comes, it is read as it is, up to the limit.
func TestPagesRead(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	broken := errors.New("broken")
	text := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i * 7 >> 3)
		}
		return b
	}
	var p Buffers
	for _, room := range []int{0, 1, 100, 3 * partSize} {
		for _, size := range []int{0, 1, 99, 100, 101, partSize - 1, partSize, partSize + 1, 5*partSize + 3} {
			for name, from := range map[string]func(io.Reader) io.Reader{
				"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "data with the error": iotest.DataErrReader,
				"fails": func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(broken)) },
				"torn":  func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(io.ErrUnexpectedEOF)) },
			} {
				for _, expected := range []int{0, partSize + 1, 3*partSize + 7, MaxKept + 1} {
					for _, limit := range []int{size + 1, size, size / 2} {
						if limit == 0 {
							continue
						}
						want := text(size)
						buf := p.Take()
						buf.Grow(room)
						n, err := p.Read(buf, from(bytes.NewReader(want)), int64(limit), expected)
						what := fmt.Sprintf("room for %d bytes, %d expected, %d bytes, %s, limit %d", room, expected, size, name, limit)
						switch {
						case limit > size && (name == "fails" && !errors.Is(err, broken) || name == "torn" && !errors.Is(err, io.ErrUnexpectedEOF)):
							t.Errorf("%s: error %v", what, err)
						case limit > size && err == nil && (n != int64(size) || !bytes.Equal(buf.Bytes(), want)):
							t.Errorf("%s: %d bytes came, and are %t", what, n, bytes.Equal(buf.Bytes(), want))
						case limit <= size && (n != int64(limit) || err != nil):
							t.Errorf("%s: %d bytes, error %v", what, n, err)
						}
						p.Give(buf, err != nil)
					}
				}
			}
		}
	}
}

// A page beyond the limit leaves far less than its size to the garbage collector: a buffer that doubles
// leaves twice as much.
func TestEndlessPagesAllocateLittle(t *testing.T) {
	const limit = 15 << 20
	var p Buffers
	buf := p.Take()
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if n, err := p.Read(buf, endless{}, limit, 0); n != int64(limit) || err != nil {
				b.Fatal(n, err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > limit/2 { // under the race detector a pool drops each fourth thing
		t.Errorf("%d bytes are allocated for a page that is cut off at %d", allocated, limit)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// An endpoint that sends the beginning of a page and then fails, or hangs, takes no room for the page that
// it was expected to send.
func TestRoomIsMadeForPagesThatCome(t *testing.T) {
	broken := errors.New("broken")
	for come, most := range map[int]int{0: 0, 100: 1 << 10, partSize - 1: 2 * partSize, partSize + 1: 2 * MaxKept} {
		var p Buffers
		buf := p.Take()
		from := io.MultiReader(bytes.NewReader(make([]byte, come)), iotest.ErrReader(broken))
		if n, err := p.Read(buf, from, 15<<20, MaxKept); n != int64(come) || !errors.Is(err, broken) {
			t.Errorf("%d bytes came of %d, error %v", n, come, err)
		}
		if buf.Cap() > most {
			t.Errorf("%d bytes came, and there is room for %d, more than %d", come, buf.Cap(), most)
		}
	}
}
