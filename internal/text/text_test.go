package text

import "testing"

// TestBound: a text is cut only if it is too long, and never within a character.
func TestBound(t *testing.T) {
	for _, c := range []struct {
		s, want string
		n       int
	}{{"", "", 0}, {"abc", "abc", 3}, {"abcd", "abc…", 3}, {"aäb", "a…", 2}, {"aäb", "aä…", 3}, {"ä", "…", 0}, {"\xff\xff\xff", "\xff…", 1}} {
		if got := Bound(c.s, c.n); got != c.want {
			t.Errorf("Bound(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}
