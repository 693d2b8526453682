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

	"hwsagent/internal/meter"
)

// maxEnded bounds the stale markers of a job that wait while the log refuses commits.
const maxEnded = 100_000

// maxRemembered bounds the series whose exemplars are remembered.
const maxRemembered = 100_000

// commitBytes bounds one commit, estimated generously. A scrape is one commit; a larger one
// takes several, since the log keeps a commit in memory.
const commitBytes = 64 << 20

// sink connects the loops to the log: it makes one commit of each scrape, counts samples that the
// log refuses, and adds stale markers whose commit failed to the next commit. It is safe for
// concurrent use.
type sink struct {
	out     func(job string, interval time.Duration) storage.AppendableV2
	set     *meter.Set
	refused *prometheus.CounterVec // samples, by job
	logger  *slog.Logger

	mu sync.Mutex
	// closed is set when the agent stops: scrapes that end later are dropped. The stop cut them
	// short, so they say nothing about their targets.
	closed   bool
	refusing bool // the last commit failed
	// ended holds the stale markers whose commit failed, by job. A scrape produces each marker
	// only once, so without them the series would never end.
	ended map[string][]marker
	// exemplars holds the exemplars that the last scrape showed of each series: a target shows
	// the same ones repeatedly, and a TSDB takes each once.
	exemplars map[storage.SeriesRef][]exemplar.Exemplar
}

// marker is a stale marker.
type marker struct {
	ref storage.SeriesRef
	t   int64
	v   float64
}

func newSink(out func(job string, interval time.Duration) storage.AppendableV2, logger *slog.Logger) *sink {
	set := meter.NewSet("hwsagent_scrape_")
	return &sink{
		out: out, logger: logger, set: set,
		refused: set.CounterVec(meter.NotZero, "refused_samples_total",
			"Scraped samples that the log refused, including stale markers and the scrape's report.", "job"),
		ended:     make(map[string][]marker),
		exemplars: make(map[storage.SeriesRef][]exemplar.Exemplar),
	}
}

// begin begins a batch for a target of a job that is scraped at that interval.
func (s *sink) begin(ctx context.Context, job string, interval time.Duration) *appender {
	a := &appender{sink: s, ctx: ctx, job: job, out: s.out(job, interval)}
	a.inner = a.out.AppenderV2(ctx)
	return a
}

// refuses logs when the log begins to refuse scrapes and when it accepts them again.
func (s *sink) refuses(err error) {
	s.mu.Lock()
	before := s.refusing
	s.refusing = err != nil
	s.mu.Unlock()
	switch {
	case err != nil && !before:
		s.logger.Warn("The log refuses scraped samples; they are counted as refused", "err", err)
	case err == nil && before:
		s.logger.Info("The log accepts scraped samples again")
	}
}

func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// takeEnded returns the waiting markers of a job, and whether the sink is still open for
// commits.
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

// fresh appends to kept the exemplars that a TSDB would take: not those that the previous scrape also
// showed, and not those with longer labels than OpenMetrics allows. shown is the
// list to remember, nil if that has not changed.
func (s *sink) fresh(kept []exemplar.Exemplar, ref storage.SeriesRef, exemplars []exemplar.Exemplar) (all, shown []exemplar.Exemplar) {
	s.mu.Lock()
	before := s.exemplars[ref]
	s.mu.Unlock()
	short := 0
	for _, e := range exemplars {
		if tooLong(e.Labels) {
			continue
		}
		short++
		e.Labels = e.Labels.Copy() // the parser reuses its memory
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

// appender holds one scrape's samples and report, or the stale markers of a target that has
// gone. It belongs to one goroutine.
type appender struct {
	sink  *sink
	ctx   context.Context // of the scrape
	job   string
	out   storage.AppendableV2
	inner storage.AppenderV2 // a batch of out

	count int // samples in inner
	bytes int // approximate size of these
	ended []marker

	exemplars []exemplar.Exemplar // reused memory
}

// Append adds a sample, as in [storage.AppenderV2]. For a reference without labels that the log no longer knows, it adds
// nothing and returns [storage.ErrNotFound].
func (a *appender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AppendV2Options) (storage.SeriesRef, error) {
	if a.bytes > commitBytes {
		// Not an error of the scrape: a refusal by the log says nothing about the target.
		a.sink.refuses(a.flush())
		a.inner = a.out.AppenderV2(a.ctx)
	}
	var shown []exemplar.Exemplar
	if len(o.Exemplars) > 0 {
		o.Exemplars, shown = a.sink.fresh(a.exemplars[:0], ref, o.Exemplars)
		a.exemplars = o.Exemplars
	}
	got, err := a.inner.Append(ref, ls, st, t, v, h, fh, o)
	if err != nil && !errors.Is(err, &storage.AppendPartialError{}) {
		return got, err
	}
	if got == 0 {
		return 0, err // skipped: the input is at its series limit
	}
	if shown != nil {
		a.sink.remember(got, shown)
	}
	a.count++
	a.bytes += 256 + len(o.Metadata.Help)
	if h != nil || fh != nil {
		a.bytes += 2048
	}
	if value.IsStaleNaN(v) && h == nil && fh == nil {
		a.ended = append(a.ended, marker{got, t, v})
		a.sink.forget(got)
	}
	return got, err
}

// filterer is a batch that counts the samples removed by relabelling.
type filterer interface{ Filtered(n int) }

// filtered counts n samples removed by metric_relabel_configs.
func (a *appender) filtered(n int) {
	if f, ok := a.inner.(filterer); ok {
		f.Filtered(n)
	}
}

// commit ends the batch. If the log refuses it, its samples are counted as refused; the start and
// the end of refusals are logged.
func (a *appender) commit() { a.sink.refuses(a.flush()) }

// rollback drops the batch.
func (a *appender) rollback() {
	if err := a.inner.Rollback(); err != nil {
		a.sink.logger.Warn("A scrape's batch could not be dropped", "job", a.job, "err", err)
	}
}

// flush commits the batch, with the waiting markers of the job.
func (a *appender) flush() error {
	before, open := a.sink.takeEnded(a.job)
	if !open {
		return a.inner.Rollback()
	}
	count := a.count
	for _, m := range before {
		// Out of order means that the series continued, so it is not stale. A series that the log has forgotten has ended.
		if _, err := a.inner.Append(m.ref, labels.EmptyLabels(), 0, m.t, m.v, nil, nil, storage.AOptions{RejectOutOfOrder: true}); err != nil {
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
