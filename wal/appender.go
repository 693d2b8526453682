package wal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

var (
	errOutOfOrder    = fmt.Errorf("append sample: %w", storage.ErrOutOfOrderSample)
	errBatchFull     = errors.New("append sample: batch is full: commit and begin another")
	errHugeHistogram = fmt.Errorf("it takes more than %d bytes", maxHistogramBytes)

	errTimeless     = errors.New("append exemplar: it has no time")
	errLongExemplar = fmt.Errorf("append exemplar: its labels take more than %d bytes", maxExemplarBytes)

	errFinished = errors.New("appender was committed or rolled back before")
)

var _ storage.AppendableV2 = (*Log)(nil)

// AppenderV2 starts a batch, which Commit logs as a whole. Any number of batches may be
// open at once; each belongs to one goroutine. ctx is not used, because Commit is not
// cancelled half-way.
//
// Append returns storage.ErrDuplicateSampleForTimestamp for another value at the newest
// timestamp of the series, and storage.ErrOutOfOrderSample for an older sample if the
// caller sets RejectOutOfOrder; otherwise older samples are logged. A repetition of the
// newest sample, equal in time and value, is accepted but neither logged nor counted
// again. The newest sample is the one with the newest time; but one up to 10 minutes ahead
// of this host's clock replaces one further ahead, which a wrong clock has made.
//
// References that Append returns stay valid for the life of the process, and labels may be left out with them. After an
// hour without a sample, Append needs the labels again; without them it returns storage.ErrNotFound.
//
// Commit returns nil when the batch survives a process kill, and under SyncAlways (while
// that is the setting) a power cut too. Otherwise no part of the batch is in the log, and
// the error is or wraps ErrFull, ErrClosed or the error of the disk.
func (l *Log) AppenderV2(context.Context) storage.AppenderV2 {
	return &appender{log: l, b: l.writer.newBatch()}
}

// Remember sets how long [Log.Ref] and [Log.Newest] must know a series after its last sample. Series not marked stale are
// kept for that long, but at least an hour. A later call replaces the setting. Safe for concurrent use.
func (l *Log) Remember(idle time.Duration) { l.series.remember(idle) }

// Ref returns the reference of the series with these labels, or 0 if no sample of it was appended lately; see
// [Log.AppenderV2]. Safe for concurrent use.
func (l *Log) Ref(ls labels.Labels) storage.SeriesRef {
	return storage.SeriesRef(l.series.find(ls))
}

// Name returns the metric name of the series with that reference, "" if it has none or the log does not know it. It costs
// less than [Log.Newest], which makes the labels. Safe for concurrent use.
func (l *Log) Name(ref storage.SeriesRef) string {
	m := l.series
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.byRef.Get(uint64(ref)); s != nil {
		return m.symbols.value(s.labels, model.MetricNameLabel)
	}
	return ""
}

// Newest returns the newest committed sample of the series with that reference: its labels, its time in milliseconds
// and its value (v, h or fh). o has only the metadata and the family, within the bounds of the log. ok is false if no
// sample was committed lately; ls is empty then, unless the log knows the reference. The caller must not change the
// histograms. Safe for concurrent use.
func (l *Log) Newest(ref storage.SeriesRef) (ls labels.Labels, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AppendV2Options, ok bool) {
	m := l.series
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.byRef.Get(uint64(ref))
	if s == nil {
		return ls, 0, 0, nil, nil, o, false
	}
	var few [24]labels.Label
	ls = labels.New(m.symbols.labels(few[:0], s.labels)...)
	if !s.committed {
		return ls, 0, 0, nil, nil, o, false
	}
	last := m.lastLocked(s)
	o.Metadata, o.MetricFamilyName = s.said.Meta, s.said.Family
	return ls, last.t, last.v, last.h, last.fh, o, true
}

// appender is one open batch.
type appender struct {
	log *Log
	b   *batch // nil after Commit or Rollback
}

// Append implements [storage.AppenderV2].
func (a *appender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AppendV2Options) (storage.SeriesRef, error) {
	if a.b == nil {
		return 0, errFinished
	}
	if err := checkHistogram(h, fh); err != nil {
		return 0, fmt.Errorf("append histogram: %w", err)
	}
	m, b := a.log.series, a.b
	bytes := b.bytes
	for i := range opts.Exemplars {
		bytes += exemplarBytes(&opts.Exemplars[i])
	}
	if bytes > maxBatch {
		return 0, errBatchFull
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	s := m.byRef.Get(uint64(ref))
	if s == nil {
		var err error
		if s, err = m.getLocked(ls); err != nil {
			return 0, fmt.Errorf("append sample: %w", err)
		}
	}
	s.used = m.tick
	l := lastSample{t: t, v: v, native: native{h, fh}}
	repeated, err := b.admitLocked(m, s, &l, opts.RejectOutOfOrder)
	if err != nil {
		return 0, err
	}
	m.describeLocked(s, &opts.Metadata, opts.MetricFamilyName)
	if !repeated {
		b.add(s.ref, st, &l)
	}
	if len(opts.Exemplars) > 0 {
		b.addExemplarsLocked(s, t, opts.Exemplars)
	}
	return storage.SeriesRef(s.ref), nil
}

// AppendExemplar adds an exemplar to a series. The batch need not have a sample of it, because
// a remote-write request may carry an exemplar of a sample sent earlier. An exemplar without a
// timestamp is refused, because there may be no sample to take the time from.
func (a *appender) AppendExemplar(ref storage.SeriesRef, ls labels.Labels, e exemplar.Exemplar) (storage.SeriesRef, error) {
	if a.b == nil {
		return 0, errFinished
	}
	switch {
	case !e.HasTs && e.Ts == 0:
		return 0, errTimeless
	case e.Labels.ByteSize() > maxExemplarBytes:
		return 0, errLongExemplar
	case a.b.bytes > maxBatch:
		return 0, errBatchFull
	}
	m := a.log.series
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.byRef.Get(uint64(ref))
	if s == nil {
		var err error
		if s, err = m.getLocked(ls); err != nil {
			return 0, fmt.Errorf("append exemplar: %w", err)
		}
	}
	s.used = m.tick
	a.b.addExemplarsLocked(s, e.Ts, []exemplar.Exemplar{e})
	return storage.SeriesRef(s.ref), nil
}

// Commit implements [storage.AppenderTransaction].
func (a *appender) Commit() error {
	b := a.b
	if b == nil {
		return errFinished
	}
	a.b = nil
	return a.log.writer.commit(b)
}

// Rollback implements [storage.AppenderTransaction].
func (a *appender) Rollback() error {
	b := a.b
	if b == nil {
		return errFinished
	}
	a.b = nil
	a.log.writer.rollback(b)
	return nil
}

// duplicateError returns the error for two values of one series at the same time.
func duplicateError(old, sample *lastSample) error {
	switch {
	case !sample.isFloat():
		return fmt.Errorf("append sample: %w", storage.ErrDuplicateSampleForTimestamp)
	case !old.isFloat():
		return fmt.Errorf("append sample: %w", storage.NewDuplicateHistogramToFloatErr(sample.t, sample.v))
	default:
		return fmt.Errorf("append sample: %w", storage.NewDuplicateFloatErr(sample.t, old.v, sample.v))
	}
}

func headRef(ref uint64) chunks.HeadSeriesRef { return chunks.HeadSeriesRef(ref) }
