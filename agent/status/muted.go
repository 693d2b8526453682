package status

import (
	"fmt"
	"strings"
	"time"

	"hwsagent/internal/text"
)

// MuteStatus describes the series of a target that are not sent at present, because the receiver refuses them for
// a known reason.
type MuteStatus struct {
	Reason  string    `json:"reason"`  // a stable key: series-limit, label-limit, type-conflict, …
	Text    string    `json:"text"`    // the reason in words
	Words   string    `json:"words"`   // the receiver's own words
	Series  int       `json:"series"`  // how many
	Example string    `json:"example"` // the labels of one of them
	Since   time.Time `json:"since"`
	Samples uint64    `json:"samples"` // samples dropped since then, as rejected
}

// muted reports series that are not sent for a known reason. Somebody must change the receiver's limits or the
// series.
func muted(now time.Time, q MuteStatus) (severity, what, try string) {
	series := "1 series is"
	if q.Series != 1 {
		series = Count(uint64(q.Series)) + " series are"
	}
	const mostWords, mostExample = 200, 160
	what = fmt.Sprintf("%s not sent since %s: %s. It says: %q, for example of %s. %s were dropped meanwhile, as rejected",
		series, Clock(now, q.Since), q.Text, Cut(text.FirstLine(q.Words), mostWords), Cut(q.Example, mostExample), Samples(q.Samples))
	try = "correct these series at their source, or change or drop them with write_relabel_configs; one sample a minute is tried, and all are sent again once it is accepted"
	if strings.Contains(q.Reason, "limit") {
		try = "raise the receiver's limit, or drop series with write_relabel_configs; one sample a minute is tried, and all are sent again once it is accepted"
	}
	return SeverityWarning, what, try
}
