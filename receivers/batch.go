package receivers

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/panics"
)

// Memory that the log keeps for a batch until its commit, in bytes, beside labels and buckets.
const (
	seriesBytes   = 256
	sampleBytes   = 64
	exemplarBytes = 96
	bucketBytes   = 24
)

// fullRetry is how long a sender is asked to wait if the log accepts nothing.
const fullRetry = 10 * time.Second

// exemplarAppender is implemented by appenders that can append exemplars of samples from an earlier request.
type exemplarAppender interface {
	AppendExemplar(ref storage.SeriesRef, l labels.Labels, e exemplar.Exemplar) (storage.SeriesRef, error)
}

// filterer is implemented by appenders that count samples dropped by relabelling.
type filterer interface{ Filtered(n int) }

// Written counts the entries that a batch has put into the log.
type Written struct{ Samples, Histograms, Exemplars uint64 }

// Batch collects the samples of one request. Commit commits everything accepted by [Batch.Series] and [Batch.Append] at
// once, or none of it. A Batch belongs to one goroutine and must end with Commit or Rollback.
type Batch struct {
	r   *Request
	g   *Gate
	app storage.AppenderV2
	now time.Time

	used            int64 // of the request's memory, when the batch began
	series, samples int

	// State of the series set by the last call of Series.
	ref    storage.SeriesRef
	labels labels.Labels // empty if the log has them
	family string
	meta   metadata.Metadata
	fault  Reason // why its samples are refused; "" if they are not

	found      *entry[Known] // by Find, last
	generation uint32        // of the active series

	lb *labels.Builder

	written Written
	refused map[Reason]uint64
	// longExemplars and unlogged, of exemplars too, are counted with the batch, but do not refuse any part of it.
	longExemplars, unlogged uint64
	refusals                []string // descriptions of the first refused samples
}

// maxHelpBytes bounds how much of a help text the log keeps.
const maxHelpBytes = 4 << 10

// maxRefusals bounds how many refused samples the answer describes.
const maxRefusals = 5

// Batch begins the batch of a request.
func (r *Request) Batch() *Batch {
	now := time.Now()
	return &Batch{
		r: r, g: r.gate, app: r.gate.o.Out.AppenderV2(r.Context()), now: now, used: r.used(),
		lb: labels.NewBuilder(labels.EmptyLabels()), refused: map[Reason]uint64{}, generation: r.gate.active.generation(now),
	}
}

// next counts a series, and refuses the request if it has too many.
func (b *Batch) next() error {
	if err := b.r.ended(); err != nil {
		return err
	}
	if b.series++; b.series > b.g.o.Limits.Series {
		return Refuse(TooManySeries, http.StatusRequestEntityTooLarge, "the request has more than limits.series (%d) series: send less at once", b.g.o.Limits.Series)
	}
	return nil
}

// SeriesBeyond is Series for a series whose labels exceed a limit by so much that the caller does not build them: the
// samples that follow are refused. name is that of the series, or "".
func (b *Batch) SeriesBeyond(name string, why *Refusal) error {
	if err := b.next(); err != nil {
		return err
	}
	b.fault = why.Reason
	b.tell(why.Reason, labels.FromStrings(model.MetricNameLabel, cut(name)), why.Text)
	return nil
}

// Series sets the series for the following calls of Append. ls must be sorted. It returns a [Refusal] if the request
// exceeds a limit; a series that is invalid, or beyond a limit for labels, only loses its own samples.
func (b *Batch) Series(ls labels.Labels, family string, meta metadata.Metadata) error {
	if why := b.r.CheckLabels(ls); why != nil {
		return b.SeriesBeyond(ls.Get(model.MetricNameLabel), why)
	}
	if err := b.begin(int64(ls.ByteSize()), family, meta); err != nil { // #nosec G115 -- labels are bounded
		return err
	}
	if why := invalid(ls); why != "" {
		b.fault = InvalidLabels
		b.tell(InvalidLabels, ls, why)
		return nil
	}
	if len(b.g.o.Relabel) > 0 {
		b.lb.Reset(ls)
		if !relabel.ProcessBuilder(b.lb, b.g.o.Relabel...) {
			b.fault = Relabelled
			return nil
		}
		before := ls
		ls = b.lb.Labels()
		if why := invalid(ls); why != "" {
			b.fault = InvalidLabels
			b.tell(InvalidLabels, before, "after metric_relabel_configs "+why)
			return nil
		}
	}
	b.labels = ls.WithoutEmpty() // as the log has them
	b.admit()
	return nil
}

// begin counts a series with that many bytes of labels, takes its memory, and makes it the current one.
func (b *Batch) begin(size int64, family string, meta metadata.Metadata) error {
	if err := b.next(); err != nil {
		return err
	}
	// Each series is logged with its texts, even if many have the same ones.
	texts := min(len(meta.Help), maxHelpBytes) + len(meta.Unit) + len(family)
	if err := b.r.take(seriesBytes + size + int64(texts)); err != nil {
		return err
	}
	b.ref, b.labels, b.family, b.meta, b.fault = 0, labels.EmptyLabels(), family, meta, ""
	return nil
}

// admit refuses the current series if too many are active. It reports whether the series counts whatever becomes of any
// request.
func (b *Batch) admit() bool {
	hash := b.labels.Hash()
	switch b.g.active.admit(hash, b.labels.ByteSize(), b.now, b.r.number) {
	case firm:
		return true
	case fresh:
		b.r.fresh = append(b.r.fresh, hash)
	case beyond:
		b.fault = NewSeries
		b.tell(NewSeries, b.labels, fmt.Sprintf("limits.active_series (%d) series are active already; one with long labels counts more than once", b.g.o.Limits.ActiveSeries))
	}
	return false
}

// Refuses reports whether the samples of the series set by Series are not stored.
func (b *Batch) Refuses() bool { return b.fault != "" }

// CheckLabels returns why ls exceed the receiver's limits for the labels of a series, nil if they do not.
func (r *Request) CheckLabels(ls labels.Labels) (why *Refusal) {
	n := 0
	ls.Range(func(l labels.Label) {
		if l.Name != model.MetricNameLabel {
			n++
		}
		if why == nil {
			why = r.CheckLabel(l.Name, len(l.Name), len(l.Value))
		}
	})
	if why == nil {
		why = r.CheckCount(n)
	}
	return why
}

// CheckLabel is CheckLabels for one label with a name and a value of so many bytes.
func (r *Request) CheckLabel(name string, nameBytes, valueBytes int) *Refusal {
	limits := r.gate.o.Limits
	switch {
	case nameBytes > limits.LabelNameBytes:
		return Refuse(LabelTooLong, http.StatusBadRequest, "the label name %q has %d bytes, more than limits.label_name_bytes (%d)", cut(name), nameBytes, limits.LabelNameBytes)
	case valueBytes > limits.LabelValueBytes:
		return Refuse(LabelTooLong, http.StatusBadRequest, "the value of label %q has %d bytes, more than limits.label_value_bytes (%d)", cut(name), valueBytes, limits.LabelValueBytes)
	}
	return nil
}

// CheckCount is CheckLabels for the number of labels without the name of the series.
func (r *Request) CheckCount(n int) *Refusal {
	if most := r.gate.o.Limits.Labels; n > most {
		return Refuse(TooManyLabels, http.StatusBadRequest, "it has %d labels, more than limits.labels (%d)", n, most)
	}
	return nil
}

// invalid describes what is wrong with the labels of a series; "" if they are valid.
func invalid(ls labels.Labels) string {
	name := ls.Get(model.MetricNameLabel)
	if name == "" {
		return "it has no name"
	}
	if !model.UTF8Validation.IsValidMetricName(name) {
		return "its name is not UTF-8"
	}
	why, last := "", ""
	ls.Range(func(l labels.Label) {
		switch {
		case why != "":
		case !model.UTF8Validation.IsValidLabelName(l.Name):
			why = fmt.Sprintf("%q is not a label name", cut(l.Name))
		case !model.LabelValue(l.Value).IsValid():
			why = fmt.Sprintf("the value of label %q is not UTF-8", cut(l.Name))
		case l.Name == last:
			why = fmt.Sprintf("label %q appears twice", cut(l.Name))
		case l.Name < last:
			why = "its labels are not sorted"
		}
		last = l.Name
	})
	return why
}

// Append adds a sample of the series set by Series: a float v, or a histogram if h or fh is set. Times are
// milliseconds; st is 0 if unknown. It returns a [Refusal] if the request exceeds a limit, and [ErrUnknown] after Repeat if the
// log has forgotten the series; it only counts an invalid sample.
func (b *Batch) Append(st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, exemplars ...exemplar.Exemplar) error {
	limits := b.g.o.Limits
	if b.samples++; b.samples > limits.Samples {
		return Refuse(TooManySamples, http.StatusRequestEntityTooLarge, "the request has more than limits.samples (%d) samples: send less at once", limits.Samples)
	}
	if err := b.r.take(memoryOf(h, fh, exemplars)); err != nil {
		return err
	}
	if b.fault != "" {
		b.refused[b.fault]++
		return nil
	}
	if err := readable(h, fh); err != nil {
		return b.refuse(InvalidSample, err.Error())
	}
	ref, err := b.app.Append(b.ref, b.labels, st, t, v, h, fh, storage.AOptions{MetricFamilyName: b.family, Metadata: b.meta, Exemplars: exemplars})
	switch {
	case err == nil, errors.Is(err, &storage.AppendPartialError{}):
	case errors.Is(err, storage.ErrNotFound):
		return b.unknown()
	case errors.Is(err, storage.ErrDuplicateSampleForTimestamp):
		return b.refuse(Duplicate, "its newest sample has the same time and another value")
	default:
		return b.refuse(InvalidSample, err.Error())
	}
	b.ref = ref
	if h != nil || fh != nil {
		b.written.Histograms++
	} else {
		b.written.Samples++
	}
	b.written.Exemplars += uint64(len(exemplars))
	return nil
}

// AppendExemplar adds an exemplar of the series set by Series, whose sample came before: with this request or with an
// earlier one.
func (b *Batch) AppendExemplar(e exemplar.Exemplar) error {
	if err := b.r.take(memoryOf(nil, nil, []exemplar.Exemplar{e})); err != nil {
		return err
	}
	if b.fault == Relabelled {
		return nil // it is refused with its series
	}
	app, ok := b.app.(exemplarAppender)
	if b.fault == "" && ok {
		if ref, err := app.AppendExemplar(b.ref, b.labels, e); err == nil {
			b.ref = ref
			b.written.Exemplars++
			return nil
		}
	}
	b.unlogged++
	return nil
}

func memoryOf(h *histogram.Histogram, fh *histogram.FloatHistogram, exemplars []exemplar.Exemplar) int64 {
	n := int64(sampleBytes)
	switch {
	case h != nil:
		n += 200 + bucketBytes*int64(len(h.PositiveBuckets)+len(h.NegativeBuckets)+len(h.CustomValues)+len(h.PositiveSpans)+len(h.NegativeSpans))
	case fh != nil:
		n += 200 + bucketBytes*int64(len(fh.PositiveBuckets)+len(fh.NegativeBuckets)+len(fh.CustomValues)+len(fh.PositiveSpans)+len(fh.NegativeSpans))
	}
	for _, e := range exemplars {
		n += exemplarBytes + int64(e.Labels.ByteSize())
	}
	return n
}

// readable reduces the resolution of a histogram to the highest that Prometheus supports.
func readable(h *histogram.Histogram, fh *histogram.FloatHistogram) error {
	tooFine := func(schema int32) bool {
		return histogram.IsExponentialSchemaReserved(schema) && schema > histogram.ExponentialSchemaMax
	}
	switch {
	case h != nil && tooFine(h.Schema):
		return h.ReduceResolution(histogram.ExponentialSchemaMax)
	case fh != nil && tooFine(fh.Schema):
		return fh.ReduceResolution(histogram.ExponentialSchemaMax)
	}
	return nil
}

// refuse counts a refused sample. It returns [ErrUnknown] if it must say of which series it is, and the log has forgotten that.
func (b *Batch) refuse(reason Reason, why string) error {
	b.refused[reason]++
	if b.labels.IsEmpty() && len(b.refusals) < maxRefusals {
		if err := b.recall(); err != nil {
			return err
		}
	}
	b.tell(reason, b.labels, why)
	return nil
}

// RefuseSamples counts n samples that the protocol itself cannot accept, with the reason.
func (b *Batch) RefuseSamples(reason Reason, n uint64, why string) {
	b.refused[reason] += n
	b.samples += int(n)
	if len(b.refusals) < maxRefusals {
		b.refusals = append(b.refusals, cut(why))
	}
}

func (b *Batch) tell(reason Reason, ls labels.Labels, why string) {
	if len(b.refusals) < maxRefusals {
		b.refusals = append(b.refusals, fmt.Sprintf("%s (%s): %s", cut(ls.String()), reason, why))
	}
}

// Commit writes everything to the log and returns when it is there. The error is a [Refusal]: with a RetryAfter if the
// log has no part of the batch, else because single samples were refused while all others were stored.
func (b *Batch) Commit() (Written, error) {
	if f, ok := b.app.(filterer); ok {
		f.Filtered(int(b.refused[Relabelled])) // #nosec G115 -- at most limits.samples
	}
	// A panic in the log is not the fault of the request, which may be retried.
	err := b.g.o.Guard.Do(b.app.Commit)
	if panics.As(err) == nil {
		b.app = nil // otherwise Rollback ends it
	}
	if err != nil {
		if b.g.o.Full(err) {
			return Written{}, later(LogFull, fullRetry, "the log is full, and wal.on_full is reject: %s", cut(err.Error()))
		}
		return Written{}, later(LogFailed, fullRetry, "the log cannot be written: %s", cut(err.Error()))
	}
	b.r.fresh = nil
	var n uint64
	b.g.count(func(c *Counts) {
		if b.longExemplars > 0 {
			c.RefusedSamples[ExemplarTooLong] += b.longExemplars
		}
		if b.unlogged > 0 {
			c.RefusedSamples[ExemplarUnlogged] += b.unlogged
		}
		c.Samples += b.written.Samples + b.written.Histograms
		for reason, refused := range b.refused {
			c.RefusedSamples[reason] += refused
			if reason != Relabelled {
				n += refused
			}
		}
	})
	if n > 0 {
		return b.written, Refuse(InvalidSample, http.StatusBadRequest, "%d of %d samples are refused, the others are stored: %s",
			n, b.samples, strings.Join(b.refusals, "; "))
	}
	return b.written, nil
}

// RefusedSamples returns how many samples Commit refuses, not counting those that relabelling drops.
func (b *Batch) RefusedSamples() (n uint64) {
	if len(b.refused) == 0 { // a range over an empty map costs more, for each sample
		return 0
	}
	for reason, refused := range b.refused {
		if reason != Relabelled {
			n += refused
		}
	}
	return n
}

// Rollback discards everything. After Commit it does nothing.
func (b *Batch) Rollback() {
	if b.app != nil {
		_ = b.app.Rollback() // there is nothing to undo
		b.app = nil
	}
}

// Abandon discards everything, and the request may use the memory again that the batch has used: the caller reads the request
// again in another way.
func (b *Batch) Abandon() {
	b.Rollback()
	b.r.spare = b.r.taken - b.used
}

// LongExemplars counts n exemplars that are dropped from the samples because they are too long.
func (b *Batch) LongExemplars(n int) { b.longExemplars += uint64(n) } // #nosec G115 -- a count

// MetadataUnkept counts one piece of metadata without a sample that could not be kept.
func (b *Batch) MetadataUnkept() { b.g.CountRefused(MetadataUnkept, 1) }

// Verdict returns the answer that Commit would give about single samples, for a request that is kept elsewhere: such a
// request is refused as a whole for one bad sample. The caller must call Rollback next.
func (b *Batch) Verdict() error {
	if n := b.RefusedSamples(); n > 0 {
		return Refuse(InvalidSample, http.StatusBadRequest, "%d of %d samples are invalid, so the whole request is refused: %s", n, b.samples, strings.Join(b.refusals, "; "))
	}
	return nil
}
