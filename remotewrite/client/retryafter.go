package client

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what a receiver may ask for: a wrong header must not stop a
// target for a day.
const maxRetryAfter = 5 * time.Minute

// retryAfter reads a Retry-After header (RFC 9110, 10.2.3: seconds or an HTTP date)
// as a wait from now, between 0 and maxRetryAfter. An unreadable header means 0. A date is
// measured from the response's own Date if there is one, so that a skew between the two clocks
// does not matter.
func retryAfter(header string, date, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if header == "" {
		return 0
	}
	if strings.Trim(header, "0123456789") == "" {
		seconds, err := strconv.Atoi(header)
		if err != nil || seconds > int(maxRetryAfter/time.Second) { // err: the number overflows
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	if date.IsZero() {
		date = now
	}
	return min(max(at.Sub(date), 0), maxRetryAfter)
}
