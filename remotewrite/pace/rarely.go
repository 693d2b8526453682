package pace

import (
	"strings"
	"sync"
	"time"
	"unicode"
)

// OnceAMinute remembers the texts logged in the last minute. Texts that differ only by digits, such as times and values, count as one. Safe for concurrent use.
type OnceAMinute struct {
	mu   sync.Mutex
	last map[string]time.Time // at most maxTexts
}

const maxTexts = 64

// Due reports whether a text about of should be logged now, and records it as logged if so.
func (o *OnceAMinute) Due(of, text string, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	text = of + withoutDigits(text)
	if last, ok := o.last[text]; ok && now.Sub(last) < time.Minute {
		return false
	}
	if o.last == nil || len(o.last) >= maxTexts {
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
