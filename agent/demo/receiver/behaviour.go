package receiver

import (
	"net/http"
	"time"

	"github.com/prometheus/prometheus/prompb"
)

// Request is one decoded remote-write request, as a [Behaviour] sees it.
type Request struct {
	Series []prompb.TimeSeries // not to be kept
	// Empty tells a write without series and metadata, as senders use to try a route.
	Empty bool
}

// Reply is what a receiver does about a request.
type Reply struct {
	Status int         // 0 is 204
	Text   string      // the body
	Header http.Header // added to the answer
	// Stored is what is recorded as stored, before the answer and whatever its status.
	Stored []prompb.TimeSeries
	// Delay passes before the answer; negative: there is none until the receiver stops
	// or the client goes away.
	Delay time.Duration
}

// Behaviour decides about a request whose credentials were accepted. It is called
// concurrently.
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

// RefuseSeries answers 400 to every request that holds a bad series. Such a request is
// stored not at all, as Prometheus does it, or without the bad series when keepGood is
// set, as Cortex and Mimir do it.
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

// Label is the value of a label of a series, "" if it has none.
func Label(ts prompb.TimeSeries, name string) string {
	for _, l := range ts.Labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}
