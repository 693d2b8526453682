// Package reply reads what a remote-write receiver answers: from a status and a text to a kind and a known reason.
//
// The words come from the receivers' own sources and documentation; each row of the table names its source. A
// text that is not in the table has the kind that its status gives, and Opaque for a refusal.
//
// A text may carry the labels of a series, and these may come from a stranger. So a row is compared with the
// beginning of a text only, after the few prefixes that receivers write before their own words (a tenant, an
// ingester, an endpoint, never a label). A text is read further in two cases: where the receiver quotes
// the labels as a Go string, so that their end is certain (Prometheus), and where it writes none (Thanos). For the
// same reason a web page is Opaque, whatever words it has.
//
// An answer to several samples may carry several texts, and a text may be cut at its end. Then the kind is
// the most careful of those that were read: Opaque, else Bad, else TooOld, else Late. So Late and TooOld say that
// no other problem was read, not that each sample of the request has that one.
package reply

import (
	"net/http"
	"strings"
)

// Kind says what an answer means for the samples of its request.
type Kind uint8

// The kinds. The zero value is the one that concludes the least.
const (
	// Opaque: a refusal that does not say why in words that the table knows; a proxy may have written it.
	Opaque Kind = iota
	// Took: the receiver has taken the request.
	Took
	// Late: the receiver's database has something as new or newer of the series (Reason OutOfOrder), or another value
	// at that time (Reason DuplicateTimestamp: then this sample itself is not stored).
	Late
	// TooOld: the sample is outside the receiver's window in time. It need not be stored.
	TooOld
	// Bad: the receiver refuses the sample or its series for a reason that is not its age.
	Bad
	// TooLarge: the request is too large; smaller ones may pass.
	TooLarge
	// Throttled: too much is sent, or a quota is used up. It says nothing about the samples.
	Throttled
	// Unauthorized: the credentials are missing, expired or not allowed to write.
	Unauthorized
	// Failed: no answer, or the receiver could not do it now; the same request may pass later.
	Failed
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	return [...]string{"opaque", "took", "late", "too old", "bad", "too large", "throttled", "unauthorized", "failed"}[k]
}

// Reply is what an answer says. Replies are comparable.
type Reply struct {
	Kind   Kind
	Reason Reason // Unknown if the text is not in the table; independent of the kind
}

// maxRead is how much of a text is read, in bytes. A text that fills it, or that is at least cutFrom long, may have
// been cut at its end by the caller or by the way.
const (
	maxRead = 4096
	cutFrom = 900
)

// Of reads an answer: its HTTP status, 0 for none, and the text of its body. White space in the text may have been
// folded. It is pure, and takes a bounded time for any text.
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
			return Reply{} // a portal or a login answers, and no receiver
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

// refuses reports whether receivers refuse samples with a status: 400, 409 (Thanos) or 422.
func refuses(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusConflict || status == http.StatusUnprocessableEntity
}

// careful orders the kinds that the words of a refusal give, the most careful one first.
func careful(a, b Reply) Reply {
	for _, k := range [...]Kind{Opaque, TooLarge, Bad, TooOld, Late} {
		switch k {
		case a.Kind:
			return a
		case b.Kind:
			return b
		}
	}
	return Reply{}
}
