package remotewrite

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

// onceAMinute bounds how often texts are logged: each at most once a minute, and at most 16 in a minute. Texts that
// differ only by digits, such as times and values, count as one. Safe for concurrent use.
type onceAMinute struct {
	mu   sync.Mutex
	last map[string]time.Time // of the texts logged in the last minute
}

const maxTexts = 16

// due reports whether a text about of should be logged now, and records it as logged if so.
func (o *onceAMinute) due(of, text string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	text = of + withoutDigits(text)
	maps.DeleteFunc(o.last, func(_ string, last time.Time) bool { return now.Sub(last) >= time.Minute })
	if _, known := o.last[text]; known || len(o.last) >= maxTexts {
		return false
	}
	if o.last == nil {
		o.last = map[string]time.Time{}
	}
	o.last[text] = now
	return true
}

func withoutDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, text)
}

// hourly bounds how often something is logged to once an hour. Times are in ns since a fixed moment in the past; 0 means never. Safe for
// concurrent use.
type hourly struct{ last atomic.Int64 }

// due reports whether to log now, and records it as logged if so.
func (h *hourly) due(now int64) bool {
	last := h.last.Load()
	return (last == 0 || time.Duration(now-last) >= time.Hour) && h.last.CompareAndSwap(last, now)
}
