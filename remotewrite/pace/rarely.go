package pace

import (
	"sync"
	"time"
)

// OnceAMinute remembers which texts were logged in the last minute. Safe for concurrent use.
type OnceAMinute struct {
	mu   sync.Mutex
	last map[string]time.Time // at most maxTexts
}

const maxTexts = 64

// Due reports whether a text is to be logged now, and takes it for logged then.
func (o *OnceAMinute) Due(text string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last, ok := o.last[text]; ok && now.Sub(last) < time.Minute {
		return false
	}
	if o.last == nil || len(o.last) >= maxTexts {
		o.last = map[string]time.Time{}
	}
	o.last[text] = now
	return true
}
