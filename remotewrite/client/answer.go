package client

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/reply"
	"hwsagent/remotewrite/wire"
)

// Answer is the result of one request, and its meaning. Exactly one of Status and Err is set.
//
// A sender fills in what it received. [Judge] adds the meaning, once, where the answer arrives; no caller reads the
// text again. Answers are values: they are passed on, kept and compared by their fields.
type Answer struct {
	Version     wire.Version     // of the request
	Compression wire.Compression // of the request
	Samples     int              // of the request
	Written     Written          // only of a request of version 2.0

	// VictoriaMetrics: the answer has the header that identifies VictoriaMetrics' programs.
	VictoriaMetrics bool

	Status     int           // the HTTP status, 0 if there was no response
	Err        error         // why there was no response; credentials and query strings are removed
	Failure    Failure       // words, remedy and severity for people; zero on success
	Blocked    bool          // Err is a refusal by a proxy or token endpoint that lasts until a person fixes it
	Again      bool          // sent twice: a kept connection ended without an answer, and the receiver may have taken the request there
	Page       bool          // a 2xx with a web page: a portal or a login answered, not a receiver
	HTML       bool          // the body is a web page, so no receiver wrote it; Text is its title, if it has one
	Text       string        // the beginning of the body, at most 1 KiB, for people
	RetryAfter time.Duration // from the header, between 0 and five minutes; 0 if absent or unreadable
	Date       time.Time     // the response's Date header, zero if absent
	Took       time.Duration // from the call of Send, connecting included, to the last byte read

	// Set by Judge.
	Verdict Verdict      // what to do with the samples
	Reason  Reason       // why a receiver's database refused the samples; ReasonUnknown unless it spoke
	Row     reply.Reason // the row of the reply table that the text matches, reply.Unknown without one
}

// Reason is why a receiver refuses samples, in the words of its own database. Any other answer, such as one of a proxy or
// one with words that the reply table does not have, is ReasonUnknown.
type Reason = reply.Kind

// The reasons.
const (
	ReasonUnknown    = reply.Opaque
	ReasonFault      = reply.Fault // see Answer.OfSeries
	ReasonLate       = reply.Late
	ReasonDuplicate  = reply.Duplicate
	ReasonTooOld     = reply.TooOld
	ReasonFuture     = reply.Future
	ReasonTooLarge   = reply.TooLarge // of the request
	ReasonPartlyDown = reply.PartlyDown
)

// FromDatabase reports whether the receiver's database refused the samples in its own words.
func (a Answer) FromDatabase() bool {
	return a.Reason != ReasonUnknown && a.Reason != ReasonTooLarge && a.Reason != ReasonPartlyDown
}

// AboutTime reports whether the database refused the samples for their order or age, or for another value at their time.
func (a Answer) AboutTime() bool {
	return a.Reason == ReasonLate || a.Reason == ReasonDuplicate || a.Reason == ReasonTooOld
}

// SaysLate reports whether the database refused the samples for their order or age. Another value at the same time does
// not count, because then the sample itself is not stored.
func (a Answer) SaysLate() bool { return a.Reason == ReasonLate || a.Reason == ReasonTooOld }

// OfSeries reports whether the database refuses the series and not only this sample. It then refuses each sample of the
// series until a person changes its labels, its type or the receiver's limits.
func (a Answer) OfSeries() bool { return a.Reason == ReasonFault && a.Row.OfSeries() }

// Judge returns a with its meaning for the samples under an entry's policy. It is pure, and idempotent.
func Judge(a Answer, p config.Policy) Answer {
	a.Row = a.said()
	a.Reason = a.Row.Kind()
	a.Verdict = verdict(a, p)
	return a
}

// said reads the words of an answer. A success needs none, and no receiver wrote those of a web page.
func (a Answer) said() reply.Reason {
	switch {
	case a.Status < 400, a.HTML:
		return reply.Unknown
	case a.Status == http.StatusUnauthorized, a.Status == http.StatusForbidden, a.Status == http.StatusProxyAuthRequired:
		return reply.Unknown // no request got as far as the database
	}
	return reply.Of(a.Text) // its words count whatever the status
}

// String returns the answer in one line, for people.
func (a Answer) String() string {
	switch {
	case a.Status == 0 && a.Err != nil:
		return a.Err.Error()
	case a.Page:
		return fmt.Sprintf("%d %s: a web page, no receiver: %s", a.Status, http.StatusText(a.Status), cmp.Or(a.Text, "it has no title"))
	case a.Status == http.StatusSwitchingProtocols:
		return "answered " + statusText(a.Status, "") + ", not remote write"
	}
	return statusText(a.Status, a.Text)
}

// Why returns in one line for people why the request failed: the words of its failure.
func (a Answer) Why() string { return cmp.Or(a.Failure.Words, a.String()) }

// Accepted reports whether a receiver accepted the request: a 2xx without a web page and, for a body
// of zstd, from VictoriaMetrics.
func (a Answer) Accepted() bool { return a.Status/100 == 2 && !a.Page && !a.unread() }

// unread reports whether a 2xx may come from a receiver that did not read the body: only
// VictoriaMetrics is known to read zstd. Others may answer 2xx to a body that they do not inspect.
func (a Answer) unread() bool { return a.Compression == wire.Zstd && !a.VictoriaMetrics }

// Denied reports whether the answer is about credentials.
func (a Answer) Denied() bool {
	return a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden
}

// FromTarget reports whether the answer is certainly the target's own. Other answers may come from an
// intermediary, such as a gateway or a login page.
func (a Answer) FromTarget() bool {
	return a.BlamesData() || a.Status == StatusUnsupported || a.Accepted()
}

// TellsTime reports whether the answer's Date is the target's.
func (a Answer) TellsTime() bool { return a.FromTarget() && !a.Date.IsZero() }

// BlamesData reports whether the answer's status says that the samples are at fault, or their number.
func (a Answer) BlamesData() bool {
	switch a.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}
