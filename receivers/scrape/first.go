package scrape

import (
	"sync/atomic"
	"time"
)

const (
	// firstWithin is how soon after the start of scraping each target is scraped once, if it is among
	// the first firstRate targets.
	firstWithin = time.Second
	// firstSpread is the period over which first scrapes are spread. It is shorter than firstWithin, so that
	// a target's point of the interval follows its first scrape by at least the difference.
	firstSpread = 900 * time.Millisecond
	// firstRate is the number of first scrapes in each firstWithin.
	firstRate = 100
	// firstLasts is how long after the start a discovered target still counts as one of the start.
	firstLasts = 10 * time.Second
)

// firsts lets targets be scraped soon after the start, ahead of their points of the interval, at most
// firstRate a second. Further targets, in the order of discovery, get a later second; a target
// whose point comes sooner than that needs no extra scrape. It is safe for concurrent use; the zero
// value allows none.
type firsts struct {
	begun time.Time
	given atomic.Int64
}

// before returns how long after now a target is scraped ahead of its point of the interval, which
// is point away; false if it is not. spread selects the moment within the second.
func (f *firsts) before(now time.Time, point time.Duration, spread uint64) (time.Duration, bool) {
	if now.Sub(f.begun) >= firstLasts || point <= firstWithin {
		return 0, false
	}
	second := time.Duration((f.given.Add(1)-1)/firstRate) * firstWithin
	if point <= second+firstWithin {
		return 0, false
	}
	return second + time.Duration(spread%uint64(firstSpread)), true
}
