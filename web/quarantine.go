package web

import (
	"fmt"
	"strings"
	"time"
)

// QuarantineStatus tells of the series of a target that are not sent at present, because the receiver refuses them for
// a reason that it gives.
type QuarantineStatus struct {
	Reason  string    `json:"reason"`  // a stable key: series-limit, label-value-too-long, type-conflict, …
	Text    string    `json:"text"`    // the reason in words
	Words   string    `json:"words"`   // of the receiver
	Series  int       `json:"series"`  // how many
	Example string    `json:"example"` // the labels of one of them
	Since   time.Time `json:"since"`
	Samples uint64    `json:"samples"` // that were dropped since then, as rejected
}

// quarantined tells of series that are not sent for a reason. Somebody has to change something: the receiver's limits or the series.
func quarantined(now time.Time, q QuarantineStatus) (severity, text, try string) {
	series := "1 series is"
	if q.Series != 1 {
		series = count(uint64(q.Series)) + " series are"
	}
	const mostWords, mostExample = 200, 160
	text = fmt.Sprintf("%s not sent since %s: %s. It says: %q, for example of %s. %s were dropped meanwhile, as rejected",
		series, clock(now, q.Since), q.Text, cut(firstLine(q.Words), mostWords), cut(q.Example, mostExample), samples(q.Samples))
	try = "correct or leave out these series with write_relabel_configs, or what they come from; one sample a minute is tried, and all are sent again by themselves once it is taken"
	if strings.Contains(q.Reason, "limit") {
		try = "raise the receiver's limit, or leave series out with write_relabel_configs; one sample a minute is tried, and all are sent again by themselves once it is taken"
	}
	return SeverityWarning, text, try
}
