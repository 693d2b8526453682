// Package reply interprets the answers of remote-write receivers: from a status and a text to a kind and a known reason.
//
// The words come from the receivers' own sources and documentation; each row of the table names its source. A
// text that is not in the table gets the kind of its status, which is Opaque for a refusal.
//
// A text may contain the labels of a series, and an untrusted sender may have chosen these. So a row is compared only with the
// beginning of a text, after the few prefixes that receivers write before their own words (a tenant, an
// ingester, an endpoint, never a label). More of a text is read in two cases: if the receiver quotes
// the labels as Go strings, so that their end is certain (Prometheus), and if it writes none (Thanos). For the
// same reason a web page is Opaque, whatever words it has.
//
// An answer to several samples may contain several texts, and the last may be cut off. Then the kind is
// the most careful of those that were read: Opaque, else Failed, else TooLarge, else Bad, else TooOld, else Late. So Late and TooOld mean that
// no other problem was read, not that each sample of the request has that one.
package reply

import (
	"net/http"
	"strings"
)

// Kind is the meaning of an answer for the samples of its request.
type Kind uint8

// The kinds. The zero value allows the fewest conclusions.
const (
	// Opaque: a refusal without a reason that the table knows; a proxy may have written it.
	Opaque Kind = iota
	// Took: the receiver accepted the request.
	Took
	// Late: the receiver's database has a sample of the series that is as new or newer (Reason OutOfOrder), or another value
	// at that time (Reason DuplicateTimestamp: then this sample itself is not stored).
	Late
	// TooOld: the sample is outside the receiver's time window. That does not mean that it is stored.
	TooOld
	// Bad: the receiver refuses the sample or its series for a reason other than its age.
	Bad
	// TooLarge: the request is too large; smaller ones may pass.
	TooLarge
	// Throttled: the rate is too high, or a quota is used up. It proves nothing about the samples.
	Throttled
	// Unauthorized: the credentials are missing, expired or not allowed to write.
	Unauthorized
	// Failed: no answer, or the receiver could not process the request now; the same request may succeed later.
	Failed
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	return [...]string{"opaque", "took", "late", "too old", "bad", "too large", "throttled", "unauthorized", "failed"}[k]
}

// Reply is the meaning of an answer. Replies are comparable.
type Reply struct {
	Kind   Kind
	Reason Reason // Unknown if the text is not in the table; independent of the kind
}

// maxRead is how much of a text is read, in bytes. A text of that length, or of at least cutFrom bytes, may have
// been cut off at its end by the caller or in transit.
const (
	maxRead = 4096
	cutFrom = 900
)

// Of interprets an answer: its HTTP status, 0 for none, and the text of its body. White space in the text may have been
// collapsed. It is pure, and its time is bounded for any text.
func Of(status int, text string) Reply {
	text = strings.TrimSpace(text[:min(len(text), maxRead)])
	page := strings.HasPrefix(text, "<")
	r, known := Reply{}, false
	if !page {
		r, known = read(text)
	}
	switch {
	case status/100 == 2 && status != 0:
		if page {
			return Reply{} // a portal or a login answered, not a receiver
		}
		return Reply{Kind: Took}
	case status == http.StatusRequestEntityTooLarge:
		return Reply{Kind: TooLarge, Reason: r.Reason}
	case status == http.StatusTooManyRequests:
		return Reply{Kind: Throttled, Reason: r.Reason}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Reply{Kind: Unauthorized}
	case status == 0, status == http.StatusRequestTimeout, status == http.StatusTooEarly, status/100 == 5:
		if known && status == http.StatusInternalServerError && r.Reason.final() {
			return r
		}
		return Reply{Kind: Failed, Reason: r.Reason}
	case refuses(status):
		return r
	}
	return Reply{Reason: r.Reason} // a redirect, a wrong path, a wrong method
}

// refuses reports whether receivers refuse samples with the status: 400, 409 (Thanos) or 422.
func refuses(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusConflict || status == http.StatusUnprocessableEntity
}

// careful returns the more careful of two refusals, by kind.
func careful(a, b Reply) Reply {
	for _, k := range [...]Kind{Opaque, Failed, TooLarge, Bad, TooOld, Late} {
		switch k {
		case a.Kind:
			return a
		case b.Kind:
			return b
		}
	}
	return Reply{}
}
