package deadletter

import (
	"os"
	"path/filepath"
	"testing"

	"hwsagent/remotewrite"
)

// TestPutAfterTruncate: when a person, or logrotate with copytruncate, empties the file of letters, later letters can be read and the count is right.
func TestPutAfterTruncate(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put := func(series string) {
		t.Helper()
		if err := s.Put([]remotewrite.Letter{{Series: series, Reason: "rejected"}}); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	put("b")
	if err := os.Truncate(filepath.Join(dir, current), 0); err != nil {
		t.Fatal(err)
	}
	put("c")
	put("d")
	ls, err := s.List()
	if err != nil || len(ls) != 2 || s.Count() != 2 {
		t.Errorf("letters %+v, count %d, %v; want c and d", ls, s.Count(), err)
	}
}
