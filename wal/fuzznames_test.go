package wal

import (
	"testing"

	"hwsagent/wal/internal/segment"
)

// FuzzNames: a file among the segments stands for one number, or for none.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"00000001", "0000000001", "123456789", "99999999999999999999", "0000000a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := segment.ParseName(s); ok && (n < 0 || segment.Name(n) != s) {
			t.Errorf("%q is segment %d", s, n)
		}
	})
}
