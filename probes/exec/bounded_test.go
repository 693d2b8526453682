package exec

import (
	"bytes"
	"errors"
	"testing"
)

// TestBoundedKeepsAllUpToTheLimit: output in pieces of any size is kept as it came, and nothing of output that is too long.
func TestBoundedKeepsAllUpToTheLimit(t *testing.T) {
	const limit = 3*maxPart + 17
	all := bytes.Repeat([]byte("0123456789abcdef\n"), limit/17+1)[:limit]
	for _, piece := range []int{1, 1000, 32 << 10, maxPart, maxPart + 1, limit} {
		b := &bounded{limit: limit, full: make(chan struct{})}
		for rest := all; len(rest) > 0; {
			n := min(piece, len(rest))
			if wrote, err := b.Write(rest[:n]); wrote != n || err != nil {
				t.Fatalf("pieces of %d bytes: %d bytes were written: %v", piece, wrote, err)
			}
			rest = rest[n:]
		}
		if got := b.text(); !bytes.Equal(got, all) || b.over() {
			t.Errorf("pieces of %d bytes: %d bytes are kept, too much %t, want all %d", piece, len(got), b.over(), len(all))
		}
		if _, err := b.Write([]byte("x")); !errors.Is(err, errTooMuch) || !b.over() || len(b.text()) > 0 {
			t.Errorf("pieces of %d bytes: with one byte more: %v, too much %t, %d bytes are kept", piece, err, b.over(), len(b.text()))
		}
	}
}

// BenchmarkBounded writes 15 MiB as a command does.
func BenchmarkBounded(b *testing.B) {
	piece := make([]byte, 32<<10)
	b.ReportAllocs()
	for b.Loop() {
		out := &bounded{limit: 15 << 20, full: make(chan struct{})}
		for range (15 << 20) / len(piece) {
			_, _ = out.Write(piece)
		}
		_ = out.text()
	}
}
