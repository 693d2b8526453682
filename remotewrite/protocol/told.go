package protocol

import (
	"log/slog"
	"sync"
)

// Told remembers for which reason people were last told that a target gets less than it might: 1.0 and not 2.0, or snappy and not
// zstd. The zero Told was told nothing. Safe for concurrent use.
type Told struct {
	mu  sync.Mutex
	why string // "": the target gets all
}

// Lost notes that the target gets less from now on, and returns how important that is to people. The same reason a second time, after the
// target was asked again, is no news. wanted says that the entry asks for more.
func (t *Told) Lost(why string, wanted bool) slog.Level {
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

// Regained notes that the target takes all, and returns why it got less; "" if people were not told of that.
func (t *Told) Regained() (before string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, t.why = t.why, ""
	return before
}
