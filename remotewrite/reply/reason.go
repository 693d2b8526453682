package reply

// Reason is a known reason for a refusal.
type Reason uint8

// The reasons. Their names (String) are stable, their values are not.
const (
	Unknown Reason = iota
	OutOfOrder
	DuplicateTimestamp
	OutsideWindow
	OutOfBounds
	TooFarInFuture
	TooFrequent
	Conflict
	SeriesLimit
	MetadataLimit
	InvalidLabel
	InvalidLabelValue
	InvalidMetricName
	MissingMetricName
	LabelNameTooLong
	LabelValueTooLong
	LabelsTooLarge
	TooManyLabels
	DuplicateLabel
	LabelsNotSorted
	EmptyLabel
	TypeConflict
	InvalidHistogram
	HistogramTooLarge
	HistogramsDisabled
	NoSample
	SampleTooLarge
	InvalidExemplar
	LateExemplar
	InvalidMetadata
	RateLimit
	TooManyReplicas
	Overloaded
	PartlyDown
	RequestTooLarge
	Malformed
	UnsupportedMessage
	Blocked
	ReceiverDisabled
	reasons // the number of reasons
)

// words are a reason's stable name and its text for people.
type words struct{ name, text string }

func (r Reason) words() words {
	if r >= reasons {
		r = Unknown
	}
	return [reasons]words{
		Unknown:            {"unknown", "the receiver's answer names no known reason"},
		OutOfOrder:         {"out-of-order", "the receiver has a newer sample of the series and accepts none out of order"},
		DuplicateTimestamp: {"duplicate-timestamp", "the receiver has another value of the series at the same time"},
		OutsideWindow:      {"outside-window", "the sample is older than the receiver's time window"},
		OutOfBounds:        {"out-of-bounds", "the sample is older than the receiver's database accepts (for Thanos also: in the future)"},
		TooFarInFuture:     {"too-far-in-future", "the sample is too far in the future by the receiver's clock"},
		TooFrequent:        {"too-frequent", "the series has more samples per time than the receiver accepts"},
		Conflict:           {"conflict", "the request conflicts with stored data; the receiver does not say with which"},
		SeriesLimit:        {"series-limit", "the receiver's limit of series is reached"},
		MetadataLimit:      {"metadata-limit", "the receiver's limit of metadata is reached"},
		InvalidLabel:       {"invalid-label", "the receiver does not accept the name of a label"},
		InvalidLabelValue:  {"invalid-label-value", "the receiver does not accept the value of a label"},
		InvalidMetricName:  {"invalid-metric-name", "the receiver does not accept the metric's name"},
		MissingMetricName:  {"missing-metric-name", "the series has no metric name"},
		LabelNameTooLong:   {"label-name-too-long", "a label's name is longer than the receiver's limit"},
		LabelValueTooLong:  {"label-value-too-long", "a label's value is longer than the receiver's limit"},
		LabelsTooLarge:     {"labels-too-large", "the series' labels together are larger than the receiver's limit"},
		TooManyLabels:      {"too-many-labels", "the series has more labels than the receiver's limit"},
		DuplicateLabel:     {"duplicate-label", "the series has a label twice"},
		LabelsNotSorted:    {"labels-not-sorted", "the series' labels are not sorted"},
		EmptyLabel:         {"empty-label", "the series has a label without a name or a value"},
		TypeConflict:       {"type-conflict", "the sample's type differs from the stored type of the metric, or the receiver does not accept it"},
		InvalidHistogram:   {"invalid-histogram", "the native histogram contradicts itself, or the receiver does not accept its schema"},
		HistogramTooLarge:  {"histogram-too-large", "the native histogram has more buckets than the receiver's limit"},
		HistogramsDisabled: {"histograms-disabled", "the receiver does not accept native histograms"},
		NoSample:           {"no-sample", "a series without a sample was sent"},
		SampleTooLarge:     {"sample-too-large", "one series alone is larger than the receiver's limit"},
		InvalidExemplar:    {"invalid-exemplar", "the receiver does not accept an exemplar"},
		LateExemplar:       {"late-exemplar", "the receiver has an exemplar of the same or a later time"},
		InvalidMetadata:    {"invalid-metadata", "the receiver does not accept the metadata"},
		RateLimit:          {"rate-limit", "the rate is above the receiver's limit"},
		TooManyReplicas:    {"too-many-replicas", "the receiver's limit of high-availability clusters is reached"},
		Overloaded:         {"overloaded", "the receiver is overloaded"},
		PartlyDown:         {"partly-down", "a part of the receiver is down"},
		RequestTooLarge:    {"request-too-large", "the request is larger than the receiver's limit"},
		Malformed:          {"malformed", "the receiver cannot read the request"},
		UnsupportedMessage: {"unsupported-message", "the receiver does not accept this version of remote write"},
		Blocked:            {"blocked", "the receiver's operator blocks the request"},
		ReceiverDisabled:   {"receiver-disabled", "remote write is switched off in the receiver"},
	}[r]
}

// String returns the reason's stable key: lower case, words joined by "-".
func (r Reason) String() string { return r.words().name }

// Text returns the reason in words for people, as a part of a sentence.
func (r Reason) Text() string { return r.words().text }

// final reports whether the reason lies in the sample although some receivers answer it with 500, which asks for a
// retry: Prometheus up to 2.48 for samples outside its window, and all versions so far for native histograms
// that are switched off and for duplicate labels.
func (r Reason) final() bool {
	switch r {
	case OutsideWindow, TooFarInFuture, HistogramsDisabled, DuplicateLabel, EmptyLabel, InvalidHistogram:
		return true
	}
	return false
}

// OfSeries reports whether the reason lies in the series, so that each of its samples is refused until a person changes
// its labels, its type or the receiver's limits.
func (r Reason) OfSeries() bool {
	switch r {
	case SeriesLimit, InvalidLabel, InvalidLabelValue, InvalidMetricName, MissingMetricName, LabelNameTooLong, LabelValueTooLong,
		LabelsTooLarge, TooManyLabels, DuplicateLabel, LabelsNotSorted, EmptyLabel, TypeConflict, HistogramsDisabled:
		return true
	}
	return false
}
