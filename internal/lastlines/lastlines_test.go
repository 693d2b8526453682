package lastlines

import (
	"fmt"
	"strings"
	"testing"
)

// TestBuffer: the buffer keeps the last lines whole, in order and within its bounds.
func TestBuffer(t *testing.T) {
	b := New(100)
	for i := range 1000 {
		text := fmt.Sprintf("line %d\n", i)
		if n, err := b.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	lines := strings.SplitAfter(string(b.Bytes()), "\n")
	if len(lines) != 12 || lines[0] != "line 989\n" || lines[10] != "line 999\n" { // 11 lines of 9 bytes
		t.Errorf("kept are %q", lines)
	}
	fmt.Fprintf(b, "%s\n", strings.Repeat("x", 101))
	if got := b.Bytes(); len(got) != 0 {
		t.Errorf("a line longer than the buffer: %q", got)
	}
	long := New(1 << 20)
	fmt.Fprintf(long, "%s\nend\n", strings.Repeat("x", 2*maxLine))
	if got := long.Bytes(); len(got) != maxLine+5 || !strings.HasSuffix(string(got), "x\nend\n") {
		t.Errorf("%d bytes are kept, want a line of %d and the last one", len(got), maxLine)
	}
	if n, err := new(Buffer).Write([]byte("a\n")); n != 2 || err != nil {
		t.Error(n, err)
	}
}
