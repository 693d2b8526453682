package receiver

import (
	"net/http"
	"time"

	"github.com/prometheus/prometheus/prompb"
)

// Request is one decoded remote-write request, as a [Behaviour] sees it.
type Request struct {
	Series []prompb.TimeSeries // not to be kept
	// Empty marks a write without series and metadata, with which senders test a route.
	Empty bool
}

// Reply is the receiver's reaction to a request.
type Reply struct {
	Status int         // 0 is 204
	Text   string      // the body
	Header http.Header // added to the answer
	// Stored are the series recorded as stored, before the answer and whatever its status.
	Stored []prompb.TimeSeries
	// Delay is the wait before the answer; negative: no answer until the receiver stops or the client goes away.
	Delay time.Duration
}

// Behaviour decides on a request whose credentials were accepted. It is called concurrently.
type Behaviour func(Request) Reply

// Accept stores everything and answers 204.
func Accept(r Request) Reply { return Reply{Stored: r.Series} }

// Refuse stores nothing and answers with a status and a text, empty writes included.
func Refuse(status int, text string) Behaviour {
	return func(Request) Reply { return Reply{Status: status, Text: text} }
}

// Slow stores everything and answers 204 after a delay.
func Slow(d time.Duration) Behaviour {
	return func(r Request) Reply { return Reply{Stored: r.Series, Delay: d} }
}

// Hang stores nothing and never answers.
func Hang(Request) Reply { return Reply{Delay: -1} }

// RefuseSeries answers 400 to every request with a bad series. It stores nothing of such a request, as Prometheus does,
// or everything except the bad series if keepGood is set, as Cortex and Mimir do.
func RefuseSeries(bad func(prompb.TimeSeries) bool, text string, keepGood bool) Behaviour {
	return func(r Request) Reply {
		var good []prompb.TimeSeries
		for _, ts := range r.Series {
			if !bad(ts) {
				good = append(good, ts)
			}
		}
		switch {
		case len(good) == len(r.Series):
			return Accept(r)
		case keepGood:
			return Reply{Status: http.StatusBadRequest, Text: text, Stored: good}
		default:
			return Reply{Status: http.StatusBadRequest, Text: text}
		}
	}
}

// Label returns the value of a label of a series, "" if it is missing.
func Label(ts prompb.TimeSeries, name string) string {
	for _, l := range ts.Labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}
