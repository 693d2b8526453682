package scrape

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/meter"
)

// maxEnded bounds how many stale markers of a job wait while the log takes nothing.
const maxEnded = 100_000

// maxRemembered bounds the series of which exemplars are remembered.
const maxRemembered = 100_000

// commitBytes is how much one commit holds, estimated generously. A scrape is one commit;
// one that is larger is several, since the log keeps a commit in memory.
const commitBytes = 64 << 20

// sink stands between the loops and the log: it makes of a scrape one commit, counts what the log
// refuses, and gives stale markers that were refused to the next commit. It is safe for concurrent
// use.
type sink struct {
	out     func(job string, interval time.Duration) storage.AppendableV2
	set     *meter.Set
	refused *prometheus.CounterVec // samples, by job
	logger  *slog.Logger

	mu sync.Mutex
	// closed says that the agent stops: scrapes that end from now on are dropped. The stop cut
	// them short, so they say nothing about their targets.
	closed   bool
	refusing bool // the last commit failed
	// ended are stale markers whose commit failed. A scrape gives each marker once, so
	// the series would never end. By job.
	ended map[string][]marker
	// exemplars are those that the last scrape showed of each series that has any: a target
	// shows the same ones again and again, and a TSDB takes each once.
	exemplars map[storage.SeriesRef][]exemplar.Exemplar
}

// marker is a stale marker.
type marker struct {
	ref    storage.SeriesRef
	labels labels.Labels
	t      int64
	v      float64
}

func newSink(out func(job string, interval time.Duration) storage.AppendableV2, logger *slog.Logger) *sink {
	set := meter.NewSet("hwsagent_scrape_")
	return &sink{
		out: out, logger: logger, set: set,
		refused: set.CounterVec(meter.NotZero, "refused_samples_total",
			"Scraped samples that the log did not take, stale markers and the scrape's report included.", "job"),
		ended:     make(map[string][]marker),
		exemplars: make(map[storage.SeriesRef][]exemplar.Exemplar),
	}
}

// begin begins a batch of a job's target that is scraped at that interval.
func (s *sink) begin(ctx context.Context, job string, interval time.Duration) *appender {
	a := &appender{sink: s, ctx: ctx, job: job, out: s.out(job, interval)}
	a.inner = a.out.AppenderV2(ctx)
	return a
}

// refuses logs when the log begins to refuse scrapes and when it takes them again.
func (s *sink) refuses(err error) {
	s.mu.Lock()
	before := s.refusing
	s.refusing = err != nil
	s.mu.Unlock()
	switch {
	case err != nil && !before:
		s.logger.Warn("The log does not take what is scraped; it is counted as refused", "err", err)
	case err == nil && before:
		s.logger.Info("The log takes what is scraped again")
	}
}

func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// takeEnded returns the markers of a job that wait, and whether anything may be committed
// at all.
func (s *sink) takeEnded(job string) (ended []marker, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended = s.ended[job]
	delete(s.ended, job)
	return ended, !s.closed
}

func (s *sink) keepEnded(job string, ended []marker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if room := maxEnded - len(s.ended[job]); len(ended) > 0 && room > 0 {
		s.ended[job] = append(s.ended[job], ended[:min(len(ended), room)]...)
	}
}

// fresh removes the exemplars that a TSDB would not take: those that the scrape before
// showed, too, and those with longer labels than OpenMetrics allows. It works in place. shown
// is what to remember, nil if that has not changed.
func (s *sink) fresh(ref storage.SeriesRef, exemplars []exemplar.Exemplar) (kept, shown []exemplar.Exemplar) {
	s.mu.Lock()
	before := s.exemplars[ref]
	s.mu.Unlock()
	kept = exemplars[:0]
	short := 0
	for _, e := range exemplars {
		if tooLong(e.Labels) {
			continue
		}
		short++
		e.Labels = e.Labels.Copy() // the parser's memory is used again
		shown = append(shown, e)
		if !slices.ContainsFunc(before, e.Equals) {
			kept = append(kept, e)
		}
	}
	if len(kept) == 0 && short == len(before) {
		shown = nil
	}
	return kept, shown
}

func (s *sink) remember(ref storage.SeriesRef, shown []exemplar.Exemplar) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.exemplars) >= maxRemembered {
		clear(s.exemplars)
	}
	s.exemplars[ref] = shown
}

func (s *sink) forget(ref storage.SeriesRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.exemplars, ref)
}

func tooLong(ls labels.Labels) bool {
	n := 0
	ls.Range(func(l labels.Label) { n += utf8.RuneCountInString(l.Name) + utf8.RuneCountInString(l.Value) })
	return n > exemplar.ExemplarMaxLabelSetLength
}

// appender is one scrape's samples with its report, or the stale markers of a target that has
// gone. It belongs to one goroutine.
type appender struct {
	sink  *sink
	ctx   context.Context // of the scrape
	job   string
	out   storage.AppendableV2
	inner storage.AppenderV2 // a batch of out

	count int // samples that inner has
	bytes int // about what they take there
	ended []marker
}

// Append adds a sample as [storage.AppenderV2] has it.
func (a *appender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AppendV2Options) (storage.SeriesRef, error) {
	if a.bytes > commitBytes {
		// Not an error of the scrape: that the log takes nothing says nothing about the target.
		a.sink.refuses(a.flush())
		a.inner = a.out.AppenderV2(a.ctx)
	}
	var shown []exemplar.Exemplar
	if len(o.Exemplars) > 0 {
		o.Exemplars, shown = a.sink.fresh(ref, o.Exemplars)
	}
	got, err := a.inner.Append(ref, ls, st, t, v, h, fh, o)
	if err != nil && !errors.Is(err, &storage.AppendPartialError{}) {
		return got, err
	}
	if got == 0 {
		return 0, err // refused, as the input has as many series as it may
	}
	if shown != nil {
		a.sink.remember(got, shown)
	}
	a.count++
	a.bytes += 256 + int(ls.ByteSize()) + len(o.Metadata.Help)
	if h != nil || fh != nil {
		a.bytes += 2048
	}
	if value.IsStaleNaN(v) && h == nil && fh == nil {
		a.ended = append(a.ended, marker{got, ls, t, v})
		a.sink.forget(got)
	}
	return got, err
}

// filterer is implemented by a batch that counts the samples that relabelling removes.
type filterer interface{ Filtered(n int) }

// filtered counts n samples that metric_relabel_configs removed.
func (a *appender) filtered(n int) {
	if f, ok := a.inner.(filterer); ok {
		f.Filtered(n)
	}
}

// commit ends the batch. If the log refuses it, its samples are counted as refused, which is
// logged when it begins and when it ends.
func (a *appender) commit() { a.sink.refuses(a.flush()) }

// rollback drops the batch.
func (a *appender) rollback() {
	if err := a.inner.Rollback(); err != nil {
		a.sink.logger.Warn("A scrape's batch could not be dropped", "job", a.job, "err", err)
	}
}

// flush commits what there is.
func (a *appender) flush() error {
	before, open := a.sink.takeEnded(a.job)
	if !open {
		return a.inner.Rollback()
	}
	count := a.count
	for _, m := range before {
		// Refused as out of order where the series went on: then it is not stale.
		if _, err := a.inner.Append(m.ref, m.labels, 0, m.t, m.v, nil, nil, storage.AOptions{RejectOutOfOrder: true}); err != nil {
			continue
		}
		a.ended = append(a.ended, m)
	}
	err := a.inner.Commit()
	if err != nil {
		a.sink.refused.WithLabelValues(a.job).Add(float64(count))
		a.sink.keepEnded(a.job, a.ended)
	}
	a.count, a.bytes, a.ended = 0, 0, nil
	return err
}
