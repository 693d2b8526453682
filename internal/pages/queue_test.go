package pages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/s2"
)

// s2 makes of a piece no more than there is room for; otherwise each part would cost an allocation.
func TestPackedSizeHasRoomForWhatS2Makes(t *testing.T) {
	if most := s2.MaxEncodedLen(partSize); most > packedSize {
		t.Errorf("s2 makes up to %d bytes of a piece, and there is room for %d", most, packedSize)
	}
}

// metrics is a page of about n bytes, as an exporter has it.
func metrics(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "http_request_duration_seconds_bucket{path=\"/api/v1/%d\",code=\"200\",le=\"0.25\"} %d\n", i, i*7919)
	}
	return b.Bytes()
}

// Pages that are under way together are read as they are, whether their parts are kept as they came, are
// compressed, or cannot be; and when they have ended nothing of them counts any more.
func TestPagesUnderWayTogether(t *testing.T) {
	noise := make([]byte, 6<<20+1)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(noise) // it returns no error
	var p Buffers
	var packed, clear int
	read := func(page []byte, then func()) {
		half := len(page)/2 + 7
		from := io.MultiReader(bytes.NewReader(page[:half]), hook(then), bytes.NewReader(page[half:]))
		buf := p.Take()
		if n, err := p.Read(buf, from, 15<<20, 0); err != nil || n != int64(len(page)) || !bytes.Equal(buf.Bytes(), page) {
			t.Errorf("%d bytes came of %d, the same %t, error %v", n, len(page), bytes.Equal(buf.Bytes(), page), err)
		}
		p.Give(buf, false)
	}
	look := func() {
		if p.clear.Load() > MaxClear+1<<20 {
			clear++
		} else {
			packed++
		}
	}
	read(metrics(7<<20+3), func() {
		read(noise, func() { // it does not become smaller, and has no room left
			look()
			read(metrics(5<<20), look)
		})
		read(metrics(5<<20), look)
	})
	if clear == 0 || packed == 0 {
		t.Errorf("at %d moments far more than MaxClear was kept as it came, at %d it was not: want both", clear, packed)
	}
	if n := p.clear.Load(); n != 0 {
		t.Errorf("when all pages have ended, %d bytes of parts count as under way", n)
	}
}

// A reader that panics leaves nothing that counts as under way.
func TestPanicOfAReaderLeavesNothing(t *testing.T) {
	var p Buffers
	func() {
		defer func() {
			if recover() == nil {
				t.Error("there was no panic")
			}
		}()
		from := io.MultiReader(bytes.NewReader(metrics(6<<20)), hook(func() { panic("broken") }))
		_, _ = p.Read(p.Take(), from, 15<<20, 0)
	}()
	if n := p.clear.Load(); n != 0 {
		t.Errorf("%d bytes of parts count as under way", n)
	}
}

// hook is a reader that calls a function and has ended.
type hook func()

func (f hook) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

// Of thirty endless pages that come at the same time little more is in memory than may be kept as it came.
func TestEndlessPagesTogetherTakeLittle(t *testing.T) {
	const together, most = 30, 3 * MaxClear
	broken := errors.New("broken")
	line := bytes.Repeat([]byte("mutant_endless 1\n"), 4<<10)
	var p Buffers
	var held int64
	before := inUse()
	var read func(n int)
	read = func(n int) {
		if n == 0 {
			held = inUse() - before
			return
		}
		all := make([]io.Reader, 0, 250)
		for range (14 << 20) / len(line) {
			all = append(all, bytes.NewReader(line))
		}
		buf := p.Take()
		if _, err := p.Read(buf, io.MultiReader(append(all, hook(func() { read(n - 1) }), iotest.ErrReader(broken))...), 15<<20, 0); !errors.Is(err, broken) {
			t.Errorf("page %d: error %v", n, err)
		}
		p.Give(buf, true)
	}
	read(together)
	if held > most {
		t.Errorf("%d endless pages hold %d bytes, more than %d", together, held, most)
	}
	if n := p.clear.Load(); n != 0 {
		t.Errorf("when all have failed, %d bytes of parts count as under way", n)
	}
}

// inUse returns the live bytes of the heap. A pool releases its memory after two collections.
func inUse() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkLargePage reads a page of 12 MiB: alone, and while other pages have taken the room for parts
// that are not compressed.
func BenchmarkLargePage(b *testing.B) {
	page := metrics(12 << 20)
	for name, others := range map[string]int64{"alone": -64 << 20, "usual": 0, "crowded": MaxClear} {
		b.Run(name, func(b *testing.B) {
			var p Buffers
			p.clear.Store(others)
			b.SetBytes(int64(len(page)))
			b.ReportAllocs()
			for b.Loop() {
				buf := p.Take()
				if _, err := p.Read(buf, bytes.NewReader(page), 15<<20, 0); err != nil {
					b.Fatal(err)
				}
				p.Give(buf, true)
			}
		})
	}
}
