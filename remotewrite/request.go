package remotewrite

import (
	"math"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/wire"
	"hwsagent/wal"
)

// Request is one encoded remote-write request.
type Request struct {
	Body    []byte       // compressed; not changed by the sender, free for reuse after Send
	Version wire.Version // of the message in it
	Samples int          // in it, histograms included
	Attempt int          // 0 for the first time that this body is sent (the Retry-Attempt header)
}

// EmptyRequest is a request without samples. A receiver that takes it answers 2xx, so it
// tells whether the route to the receiver works without handing over a sample.
func EmptyRequest(v wire.Version) Request {
	return Request{Version: v, Body: wire.Empty(v)}
}

// Answer is what came of one request. Exactly one of Status and Err is set.
type Answer struct {
	Version wire.Version // of the request
	Samples int          // of the request
	Written Written      // only of a request of version 2.0

	Status     int           // the HTTP status, 0 when there was no response
	Err        error         // why there was none; credentials and query strings are removed
	Blocked    bool          // Err is a refusal on the way to the receiver that lasts until somebody mends it
	Page       bool          // a 2xx with a web page: a portal or a login answers, and no receiver
	HTML       bool          // the body is a web page, so no receiver wrote it; Text is its title, if it has one
	Text       string        // the body's beginning, at most 1 KiB, for people
	RetryAfter time.Duration // as the header said, at least 0 and clamped; 0 when absent or unreadable
	Date       time.Time     // the response's Date header, zero when absent
	Took       time.Duration // from the call of Send, connecting included, to the last byte read
}

// kind says what a point is.
type kind uint8

const (
	float kind = iota
	intHistogram
	floatHistogram
	exemplarPoint
)

// point is one sample (or exemplar) on its way to a target. Points are values: a
// batch owns its slice, nothing of it aliases the log's buffers.
type point struct {
	series *series
	seq    uint64 // of the entry in Progress that waits for the outcome
	st, t  int64
	v      float64
	kind   kind
	aux    *pointAux // nil for a float
}

// pointAux holds what few points have, so that a float stays small.
type pointAux struct {
	h      *histogram.Histogram
	fh     *histogram.FloatHistogram
	labels labels.Labels // of an exemplar
}

// series is a log series as one target sends it: external labels merged,
// write_relabel_configs applied, labels encoded once.
type series struct {
	from *wal.Series // what it was made of; a cache entry is stale when this differs
	hash uint64      // of the final labels; picks the shard
	wire wire.Series // the final labels, encoded; empty if relabelling removed the series

	// owner is whose it may be, of the target of the rest of an entry with tenants; see
	// [seriesCache.at]. Else nil.
	owner *owner

	// newest is the time, in ms, of the newest sample that the target is known to have
	// taken since this process began; or noneTaken, or noneTakenOneRefused. It is not
	// part of what is immutable: it belongs to the goroutine of the series' shard.
	newest int64
	// newestIn is the commit that newest came in; 0 before there was one. While newest is noneTakenOneRefused
	// it is what refusals returns.
	newestIn uint64
}

// Where no sample of a series was taken yet. Both are before every sample.
const (
	noneTaken           = math.MinInt64
	noneTakenOneRefused = math.MinInt64 + 1 // alone: it may have been late
)

// dropped reports whether write_relabel_configs removed the series.
func (s *series) dropped() bool { return s.wire.IsEmpty() }

// labels decodes the final labels.
func (s *series) labels() labels.Labels {
	ls, err := s.wire.Labels()
	if err != nil {
		return s.from.Labels // cannot be: the labels were encoded here
	}
	return ls
}

// Letter is one refused sample in the dead-letter store, or several where a refused
// batch could not be taken apart within the limit.
type Letter struct {
	Time      time.Time `json:"time"`              // when it was refused
	Series    string    `json:"series"`            // labels as sent, in the exposition notation
	Timestamp int64     `json:"timestamp_ms"`      // the sample's
	Value     string    `json:"value"`             // formatted so that NaN and stale markers survive
	Reason    string    `json:"reason"`            // a wal.Reason
	Status    int       `json:"status"`            // the HTTP status of the refusal, 0 if there was no answer
	Text      string    `json:"text"`              // what the server said, at most 1 KiB; without an answer, why there was none
	Samples   int       `json:"samples,omitempty"` // how many samples the letter stands for, if not one
}
