package deadletter

import (
	"fmt"
	"sync/atomic"
	"testing"

	"hwsagent/remotewrite"
)

// TestListBesideAnAgent: a command that lists the letters while the agent adds some sees all that were durable before it began, as far as the
// bounds keep them: at least half as many as these allow, without a gap.
func TestListBesideAnAgent(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{MaxLetters: 40})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var newest atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := int64(1); n <= 2000; n++ {
			if err := s.Put([]remotewrite.Letter{{Series: fmt.Sprint(n), Timestamp: n}}); err != nil {
				t.Error(err)
				return
			}
			newest.Store(n)
		}
	}()
	lists, wrong := 0, 0
	for {
		before := newest.Load()
		all, err := List(dir)
		if err != nil {
			t.Fatal(err)
		}
		lists++
		if before > 20 && (len(all) == 0 || all[len(all)-1].Timestamp < before) || len(all) < 20 && before > 40 {
			if wrong++; wrong == 1 {
				t.Errorf("letter %d was durable before the list was read; it has %d letters, the newest %v", before, len(all), all[max(len(all)-1, 0):])
			}
		}
		for i := 1; i < len(all); i++ {
			if all[i].Timestamp != all[i-1].Timestamp+1 {
				if wrong++; wrong == 1 {
					t.Errorf("letter %d follows %d: %d are missing in between", all[i].Timestamp, all[i-1].Timestamp, all[i].Timestamp-all[i-1].Timestamp-1)
				}
			}
		}
		select {
		case <-done:
			if wrong > 0 {
				t.Errorf("%d of %d lists are wrong", wrong, lists)
			}
			return
		default:
		}
	}
}
