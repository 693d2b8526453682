package receivers

import (
	"log/slog"
	"testing"
	"time"
)

// TestStatusDuringAChange: Status answers while a change of the receivers waits for requests or a file.
func TestStatusDuringAChange(t *testing.T) {
	s := NewSet(slog.New(slog.DiscardHandler), time.Second)
	s.mu.Lock() // as Plan and Apply hold it
	defer s.mu.Unlock()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		s.Status()
	}()
	select {
	case <-answered:
	case <-time.After(10 * time.Second):
		t.Error("Status waits for the change")
	}
}
