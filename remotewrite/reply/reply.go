// Package reply reads the text of a refusal. It decides whether a receiver's database wrote the text, and which reason the
// text gives for refusing the samples.
//
// The words come from the receivers' own sources and documentation; each row of the table names its source. The table has
// only reasons that decide the fate of samples. Any other text is Unknown: the queue then needs more requests to find the
// reason, but loses no sample.
//
// A text may contain the labels of a series, and an untrusted sender may have chosen these. So a row is compared only with
// the beginning of a text, after the few prefixes that receivers write before their own words (a tenant, an ingester, an
// endpoint, never a label). Of several problems in one text the first counts, because only the text for a sample that was
// refused alone decides about it.
package reply

import "strings"

// Kind is the conclusion from a refusal about the samples of its request.
type Kind uint8

// The kinds. The zero value allows no conclusion.
const (
	Opaque     Kind = iota // no words of a receiver's database: a proxy may have written them
	Fault                  // the series or the value is refused, at any time
	Late                   // the receiver has a newer sample of the series, and takes none out of order
	Duplicate              // the receiver has another value of the series at this time
	TooOld                 // the sample is older than the receiver's window; that does not mean that it is stored
	Future                 // the sample is too far ahead of the receiver's clock
	TooLarge               // the request is too large; smaller ones may pass
	PartlyDown             // a part of the receiver is down: this says nothing about the samples
)

// String returns the kind in words.
func (k Kind) String() string {
	return [...]string{"unknown", "fault", "late", "duplicate", "too old", "future", "too large", "partly down"}[k]
}

// Reason is a known reason for a refusal.
type Reason uint8

// The reasons. Their names (String) are stable, their values are not.
const (
	Unknown Reason = iota
	OutOfOrder
	DuplicateTimestamp
	OutsideWindow
	TooFarInFuture
	SeriesLimit
	InvalidLabels
	LabelLimit
	TypeConflict
	HistogramsDisabled
	InvalidHistogram
	RequestTooLarge
	Unavailable
	reasons // the number of reasons
)

// about is what a reason means.
type about struct {
	name     string // stable
	kind     Kind
	ofSeries bool
	text     string // for people
}

func (r Reason) about() about {
	if r >= reasons {
		r = Unknown
	}
	const ofSeries, ofSample = true, false
	return [reasons]about{
		Unknown:            {"unknown", Opaque, ofSample, "the receiver's answer names no known reason"},
		OutOfOrder:         {"out-of-order", Late, ofSample, "the receiver has a newer sample of the series and accepts none out of order"},
		DuplicateTimestamp: {"duplicate-timestamp", Duplicate, ofSample, "the receiver has another value of the series at the same time"},
		OutsideWindow:      {"outside-window", TooOld, ofSample, "the sample is older than the receiver accepts (for Thanos also: in the future)"},
		TooFarInFuture:     {"too-far-in-future", Future, ofSample, "the sample is too far in the future by the receiver's clock"},
		SeriesLimit:        {"series-limit", Fault, ofSeries, "the receiver's limit of series is reached"},
		InvalidLabels:      {"invalid-labels", Fault, ofSeries, "the receiver does not accept the series' name or labels"},
		LabelLimit:         {"label-limit", Fault, ofSeries, "the series has more, longer or larger labels than the receiver's limit"},
		TypeConflict:       {"type-conflict", Fault, ofSeries, "the sample's type differs from the stored type of the metric, or the receiver does not accept it"},
		HistogramsDisabled: {"histograms-disabled", Fault, ofSeries, "the receiver does not accept native histograms"},
		InvalidHistogram:   {"invalid-histogram", Fault, ofSample, "the native histogram contradicts itself, or the receiver does not accept its schema or size"},
		RequestTooLarge:    {"request-too-large", TooLarge, ofSample, "the request is larger than the receiver's limit"},
		Unavailable:        {"partly-down", PartlyDown, ofSample, "a part of the receiver is down"},
	}[r]
}

// String returns the reason's stable key: lower case, words joined by "-".
func (r Reason) String() string { return r.about().name }

// Text returns the reason in words for people, as a part of a sentence.
func (r Reason) Text() string { return r.about().text }

// Kind returns the conclusion from the reason about the samples.
func (r Reason) Kind() Kind { return r.about().kind }

// OfSeries reports whether the reason lies in the series, so that each of its samples is refused until a person changes
// its labels, its type or the receiver's limits.
func (r Reason) OfSeries() bool { return r.about().ofSeries }

// maxRead is how much of a text is read, in bytes.
const maxRead = 4096

// Of returns the reason in the text of a refusal, Unknown for a web page. White space in the text may have been collapsed,
// and its end cut off. It is pure, and its time is bounded for any text.
func Of(text string) Reason {
	text, list := unwrap(strings.TrimSpace(text[:min(len(text), maxRead)]))
	if !list {
		return read(text)
	}
	// Thanos joins the texts of several endpoints, none of which has labels. They count if they agree.
	first, rest, more := strings.Cut(text, "; ")
	r := read(first)
	for more {
		var next string
		next, rest, more = strings.Cut(rest, "; ")
		next, _ = unwrap(next)
		if read(next) != r {
			return Unknown
		}
	}
	return r
}

// read returns the reason of a text without prefixes.
func read(text string) Reason {
	for i := range table {
		if _, ok := match(table[i].words, text); ok {
			return table[i].reason
		}
	}
	return readKey(text)
}

// readKey reads the key of Mimir's error catalogue and ignores the words before it, which Mimir may change. These words
// must not contain a label: labels are always quoted or in braces.
func readKey(text string) Reason {
	before, after, ok := strings.Cut(text, "(err-mimir-")
	if !ok || strings.ContainsAny(before, "\"'`{}=<>\n") {
		return Unknown
	}
	key, _, _ := strings.Cut(after, ")")
	return catalogue[key]
}

// unwrap removes the prefixes that receivers write before their own words; list is set if several texts follow, joined by "; ".
func unwrap(text string) (words string, list bool) {
	const deep = 12
	for range deep {
		before := len(text)
		for i := range wrappers {
			if after, ok := match(wrappers[i].words, text); ok {
				text, list = after, list || wrappers[i].list
				break
			}
		}
		if len(text) == before {
			break
		}
	}
	return text, list
}

// match compares the beginning of a text with words, in which a '#' stands for a number, a time, a duration, an address or
// a name: 1 to 253 letters, digits and a few signs, as many as possible, without trailing ':' and '.'. It returns the text
// after the words, and reads each byte once.
func match(words, text string) (after string, ok bool) {
	for {
		literal, more, wild := strings.Cut(words, "#")
		if text, ok = strings.CutPrefix(text, literal); !ok {
			return "", false
		}
		if !wild {
			return text, true
		}
		const longest = 253 // the longest host name
		n := 0
		for n < len(text) && n < longest && inName(text[n]) {
			n++
		}
		for n > 0 && (text[n-1] == ':' || text[n-1] == '.') {
			n--
		}
		if n == 0 {
			return "", false
		}
		text, words = text[n:], more
	}
}

func inName(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte(".:+-_/[]|!*@", c) >= 0
}
