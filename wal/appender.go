package wal

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// AppenderV2 starts a batch, which Commit logs as a whole. Batches of any number of
// goroutines may be open at once; one batch belongs to one goroutine. ctx is not
// used: a Commit that has begun is not given up half-way.
//
// Append returns storage.ErrDuplicateSampleForTimestamp for a series' newest
// timestamp with another value, and storage.ErrOutOfOrderSample for an older one if
// the caller wants that; every other older sample is logged. A sample that repeats
// the newest one in time and value is accepted, but logged and counted no second
// time. References that Append returns stay valid for the life of the process; after
// an hour without a sample they need the labels again.
//
// Commit returns nil when a process kill can no longer take the batch, and under
// SyncAlways, as long as that is the setting, when a power cut cannot either. Otherwise
// nothing of the batch is in the log, and the error is or wraps ErrFull, ErrClosed, or what
// the disk said.
func (l *Log) AppenderV2(context.Context) storage.AppenderV2 {
	return &appender{log: l, b: l.writer.newBatch()}
}

// Share returns labels that equal ls: those that the log has in memory, where a sample of that series was
// appended lately, else ls. Whoever keeps the labels of what it appends keeps these, so that they are in memory
// once, also after a series has ended and come back. Safe for concurrent use.
func (l *Log) Share(ls labels.Labels) labels.Labels {
	if s := l.series.find(ls); s != nil {
		return s.labels
	}
	return ls
}

// Remember says how long series without a sample are asked for by [Log.Ref] and [Log.Newest]. Those not marked stale are
// kept for that long, and for an hour at least, whatever was said before. Safe for concurrent use.
func (l *Log) Remember(idle time.Duration) { l.series.remember(idle) }

// Ref is the reference of the series with these labels, 0 if no sample of it was appended lately; see
// [Log.AppenderV2]. Safe for concurrent use.
func (l *Log) Ref(ls labels.Labels) storage.SeriesRef {
	if s := l.series.find(ls); s != nil {
		return storage.SeriesRef(s.ref)
	}
	return 0
}

// Newest is the newest committed sample of the series with that reference, as it was appended: its labels, its time in
// milliseconds, its value, which is v, h or fh, and of o the metadata and the family, within the bounds of the log. ok is
// false if no sample was committed lately. The histograms must not be changed. Safe for concurrent use.
func (l *Log) Newest(ref storage.SeriesRef) (ls labels.Labels, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AppendV2Options, ok bool) {
	m := l.series
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.byRef.Get(uint64(ref))
	if s == nil || !s.committed {
		return ls, 0, 0, nil, nil, o, false
	}
	last := m.lastLocked(s)
	o.Metadata, o.MetricFamilyName = s.about.Meta, s.about.Family
	return s.labels, last.t, last.v, last.h, last.fh, o, true
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

// AppendExemplar adds an exemplar to a series of which this batch need not have a sample:
// remote write brings exemplars whose sample came with an earlier request. One without a
// time is refused, as nothing else tells when it was.
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

// duplicateError says which values clash.
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
