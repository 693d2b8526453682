package scrape

import (
	"sync/atomic"
	"time"
)

const (
	// firstWithin is how long after the start of scraping a target has been scraped once, if it is
	// among the first of firstRate.
	firstWithin = time.Second
	// firstSpread is what first scrapes are spread over. It is shorter than firstWithin, so that a
	// target's point of the interval is at least the difference behind its first scrape.
	firstSpread = 900 * time.Millisecond
	// firstRate is how many first scrapes there are in each firstWithin.
	firstRate = 100
	// firstLasts is how long discovery may take to find a target that still counts as one of the start.
	firstLasts = 10 * time.Second
)

// firsts lets targets be scraped soon after the start, ahead of their points of the interval. Only
// so many are in each second, however many targets there are: the others, in the order in which
// they are found, get a later second, and those whose point comes before that need no other scrape.
// It is safe for concurrent use; the zero value lets none.
type firsts struct {
	begun time.Time
	given atomic.Int64
}

// before returns how long after now a target is scraped ahead of its point of the interval, which
// is point away; false if it is not. spread decides when within the second.
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
