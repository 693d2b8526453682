package pace

import (
	"sync/atomic"
	"time"
)

// Hourly bounds how often something is logged to once an hour. Times are in ns since a fixed moment in the past; 0 means never. Safe for
// concurrent use.
type Hourly struct{ last atomic.Int64 }

// Due reports whether to log now, and records it as logged if so.
func (h *Hourly) Due(now int64) bool {
	last := h.last.Load()
	return (last == 0 || time.Duration(now-last) >= time.Hour) && h.last.CompareAndSwap(last, now)
}
