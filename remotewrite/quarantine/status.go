package quarantine

import (
	"slices"
	"time"
)

// Status describes, to users, the series of a target that are not sent at present because the receiver refuses them for one
// reason.
type Status struct {
	Reason  string    // a stable key
	Text    string    // the reason in words, as a part of a sentence
	Words   string    // the receiver's text when it last refused one
	Series  int       // number of series, except those without a sample for two hours
	Example string    // the labels of one of them
	Since   time.Time // when the first one went into quarantine
	Samples uint64    // dropped since then
}

// Merge adds x, of another lane of the target, to all. The series of a backlog are usually those of the live samples, so they count once.
func Merge(all []Status, x Status) []Status {
	i := slices.IndexFunc(all, func(y Status) bool { return y.Reason == x.Reason })
	if i < 0 {
		return append(all, x)
	}
	y := &all[i]
	y.Series, y.Samples = max(y.Series, x.Series), y.Samples+x.Samples
	if x.Since.Before(y.Since) {
		y.Since = x.Since
	}
	return all
}
