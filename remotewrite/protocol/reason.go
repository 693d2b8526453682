package protocol

import (
	"log/slog"
	"sync"
)

// LastReason remembers the last logged reason why a target gets less than it might: 1.0 instead of 2.0, or snappy instead of
// zstd. The zero LastReason has no reason. Safe for concurrent use.
type LastReason struct {
	mu  sync.Mutex
	why string // "": the target gets everything
}

// Lost records that the target gets less from now on, and returns the log level for it. A repeated reason, after the
// target was tried again, has level debug. wanted is set if the entry asks for more.
func (t *LastReason) Lost(why string, wanted bool) slog.Level {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.why == why
	t.why = why
	switch {
	case known:
		return slog.LevelDebug
	case wanted:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// Regained records that the target gets everything, and returns the previous reason; "" if there was none.
func (t *LastReason) Regained() (before string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, t.why = t.why, ""
	return before
}
