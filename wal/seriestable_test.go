package wal

import (
	"encoding/binary"
	"strings"
	"testing"
	"unsafe"
)

// TestCursorsShareLongLabels: a label of a megabyte is in memory once, however many targets are behind.
func TestCursorsShareLongLabels(t *testing.T) {
	encoded := func(value string) []byte {
		b := []byte{1, 1, 'x'}
		return append(binary.AppendUvarint(b, uint64(len(value))), value...)
	}
	first, second := newSeriesTable(nil), newSeriesTable(nil)
	for _, n := range []int{10, longLabels, 1 << 20} {
		text := encoded(strings.Repeat("v", n))
		a, b := first.announce(uint64(n), text), second.announce(uint64(n), text)
		if a == nil || b == nil {
			t.Fatalf("labels of %d bytes are refused", n)
		}
		x, y := a.series.Labels.Get("x"), b.series.Labels.Get("x")
		if x != y || len(x) != n {
			t.Errorf("labels of %d bytes: %d and %d bytes", n, len(x), len(y))
		}
		if shared := unsafe.StringData(x) == unsafe.StringData(y); shared != (len(text) >= longLabels) {
			t.Errorf("labels of %d bytes: shared=%t", n, shared)
		}
	}
}
