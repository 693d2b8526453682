package wal

import "testing"

// FuzzNames: a file among the savepoints stands for one target's name, and one among the
// segments for one number, or for none.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"prod", "a%2fb", "%", "%2", "%zz", "A", "..", "00000001", "0000000001", "123456789", "99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if name, ok := unescapeName(s); ok {
			if again, err := escapeName(name); err != nil || again != s {
				t.Errorf("%q is the target %q, whose file is %q: %v", s, name, again, err)
			}
		}
		if file, err := escapeName(s); err == nil {
			if name, ok := unescapeName(file); !ok || name != s {
				t.Errorf("the target %q has the file %q, which is %q", s, file, name)
			}
		}
		if n, ok := parseSegmentName(s); ok && (n < 0 || segmentName(n) != s) {
			t.Errorf("%q is segment %d", s, n)
		}
	})
}
