package scrape

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/internal/pages"
	"hwsagent/internal/panics"
)

// alignment is how far a sample's time may be moved to an even distance from the previous one,
// which takes less room in a TSDB: two milliseconds, or a hundredth of the interval if that is less.
const alignment = 2 * time.Millisecond

// shared is the state that all loops share.
type shared struct {
	sink    *sink
	metrics *metrics
	logger  *slog.Logger
	guards  *guards
	seed    uint64 // of the host, see target.offset
	// requests ends when scrapes in progress must end, shortly after the loops were ended.
	requests   context.Context
	startTimes bool
	pages      pages.Buffers
	firsts     firsts
}

// guards returns the guard that contains the panics of a job's work.
type guards struct {
	of func(job string) *panics.Guard
}

// loop scrapes one target under one configuration until it is ended.
type loop struct {
	*shared
	target *target
	job    string
	reading
	request *requester
	report  *report
	cache   *cache // owned by the loop's goroutine while that runs

	// Of the job.
	guard    *panics.Guard
	refusal  *atomic.Pointer[error] // why no target may be scraped; nil if they may
	failures *atomic.Pointer[failureLog]

	scraping context.Context // ends the loop, but not a scrape in progress
	end      context.CancelFunc
	handed   atomic.Bool   // another loop continues with the target and the cache
	ended    chan struct{} // closed when the loop has stopped scraping and no longer uses the cache
	refused  bool          // the last scrape had samples refused for their time
}

// run scrapes until the loop is ended. If the target has gone while the job and the agent go on, it marks
// the series as stale two intervals later, also those of a loop whose cache it has. It starts when before is
// closed, or at once if before is nil.
func (l *loop) run(job context.Context, before <-chan struct{}) {
	if before != nil {
		<-before
	}
	ticker := time.NewTicker(l.target.interval)
	defer ticker.Stop()
	if l.scrapes(ticker, before == nil) && job.Err() == nil && !l.handed.Load() {
		l.gone(job, ticker)
	}
}

// scrapes scrapes until the loop is ended. It reports whether there was a scrape with its cache, of this
// loop or of one that it continues.
func (l *loop) scrapes(ticker *time.Ticker, fresh bool) bool {
	defer close(l.ended)
	if !l.rounds(ticker, fresh).IsZero() {
		l.cache.used = true
	}
	return l.cache.used
}

// rounds scrapes at the target's point of each interval. At the agent's start it scrapes a fresh target
// once before that. It returns the start of the last scrape, the zero time if there was none.
func (l *loop) rounds(ticker *time.Ticker, fresh bool) (last time.Time) {
	interval := l.target.interval
	if fresh {
		last = l.first()
	}
	if !wait(l.scraping, l.target.offset(time.Now(), interval, l.seed)) {
		return last
	}
	ticker.Reset(interval)
	// Round(0) strips the monotonic clock: samples have times of the wall clock.
	aligned := time.Now().Round(0)
	for l.scraping.Err() == nil {
		now := time.Now().Round(0)
		if late := now.Sub(aligned); late >= interval {
			aligned = aligned.Add(late - late%interval)
		}
		at := now
		if now.Sub(aligned) <= min(interval/100, alignment) {
			at = aligned
		}
		if !last.IsZero() {
			l.metrics.interval.WithLabelValues(interval.String()).Observe(time.Since(last).Seconds())
		}
		last = time.Now()
		l.scrape(last, at.UnixMilli())
		select {
		case <-l.scraping.Done():
		case <-ticker.C:
		}
	}
	return last
}

// first scrapes soon after the agent's start, unless the target's point of the interval comes as
// soon. It returns the start of that scrape, the zero time if there was none.
func (l *loop) first() (began time.Time) {
	now := time.Now()
	soon, ok := l.firsts.before(now, l.target.offset(now, l.target.interval, l.seed), l.target.hash^l.seed)
	if !ok || !wait(l.scraping, soon) {
		return began
	}
	began = time.Now()
	l.scrape(began, began.UnixMilli())
	return began
}

// wait reports whether d has passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// scrape scrapes once. A panic costs this scrape.
func (l *loop) scrape(start time.Time, t int64) {
	if err := l.guard.Do(func() error { l.round(start, t); return nil }); err != nil {
		l.target.state.report(start, time.Since(start), err)
	}
}

// round gets the page and appends its samples, or stale markers if the scrape failed, in one batch with the report.
func (l *loop) round(start time.Time, t int64) {
	batch := l.begin()
	defer func() {
		if batch != nil { // also after a panic
			batch.rollback()
		}
	}()
	var o outcome
	if why := l.refusal.Load(); why != nil {
		o.err = *why
	} else {
		o = l.page(batch, t)
	}
	if l.requests.Err() != nil {
		return // a stop cut it short, which says nothing about the target
	}
	if o.err != nil {
		batch.rollback()
		batch = l.begin()
		l.logger.Debug("Scrape failed", "job", l.job, "target", l.target.shown(), "err", o.err)
		l.failures.Load().write(l.job, l.target.shown(), o.err)
		err := l.pass(batch, t).nothing()
		if l.requests.Err() != nil {
			return
		}
		if err != nil {
			l.logger.Warn("The series that ended with a failed scrape cannot be marked as stale", "job", l.job, "target", l.target.shown(), "err", err)
			batch.rollback()
			batch = l.begin()
		}
	}
	o.took = time.Since(start)
	l.target.state.report(start, o.took, o.err)
	if err := l.report.append(batch, t, o, l); err != nil {
		l.logger.Warn("The report of a scrape is refused, and the scrape with it", "job", l.job, "target", l.target.shown(), "err", err)
		return
	}
	batch.commit()
	batch = nil
}

func (l *loop) begin() *appender {
	return l.sink.begin(l.requests, l.job, l.target.interval)
}

// page gets the page and appends its samples.
func (l *loop) page(batch *appender, t int64) (o outcome) {
	buf := l.pages.Take()
	defer func() { l.pages.Give(buf, o.err != nil) }()
	ctx, cancel := context.WithTimeout(l.requests, l.target.timeout)
	defer cancel()
	contentType, err := l.request.get(ctx, buf, &l.pages)
	if err != nil {
		if errors.Is(err, errBodySize) {
			l.metrics.bodySize.Inc()
			return outcome{err: err, bytes: -1}
		}
		return outcome{err: err}
	}
	if buf.Len() == 0 { // all series end, and the scrape has succeeded
		return outcome{err: l.pass(batch, t).nothing()}
	}
	p := l.pass(batch, t)
	// A panic of the parser fails the scrape, like a syntax error in the page.
	err = l.guard.Do(func() error { return p.page(buf.Bytes(), contentType) })
	o = p.outcome
	o.bytes = buf.Len()
	if err != nil {
		o.err = l.request.hidden(err)
	}
	l.tellRefused(p)
	return o
}

func (l *loop) pass(to *appender, t int64) *pass {
	return &pass{
		reading: l.reading, ctx: l.requests, target: l.target, cache: l.cache, to: to, metrics: l.metrics,
		builder: labels.NewBuilder(labels.EmptyLabels()), t: t, latest: time.Now().Add(maxAhead).UnixMilli(),
	}
}

// tellRefused logs when samples begin to be refused for their time.
func (l *loop) tellRefused(p *pass) {
	refused := p.repeated+p.old+p.ahead > 0
	if refused && !l.refused {
		l.logger.Warn("Samples of a target are refused for their time", "job", l.job, "target", l.target.shown(),
			"same_time", p.repeated, "too_old", p.old, "ahead", p.ahead)
	}
	l.refused = refused
}

// gone marks the series of a target that has gone as stale. It waits until the target would have
// been scraped twice: if the target has come back by then, its samples are newer, and the log
// refuses the markers.
func (l *loop) gone(job context.Context, ticker *time.Ticker) {
	var at time.Time
	for i := range 2 {
		select {
		case <-job.Done():
			return
		case <-ticker.C:
		}
		if i == 0 {
			at = time.Now()
		}
	}
	if !wait(job, l.target.interval/10) {
		return
	}
	if err := l.guard.Do(func() error { return l.markGone(at.UnixMilli()) }); err != nil && l.requests.Err() == nil {
		l.logger.Warn("The series of a target that has gone cannot be marked as stale", "job", l.job, "target", l.target.shown(), "err", err)
	}
}

func (l *loop) markGone(t int64) error {
	batch := l.begin()
	if err := l.pass(batch, t).nothing(); err != nil {
		batch.rollback()
		return err
	}
	if err := l.report.end(batch, t); err != nil {
		batch.rollback()
		return err
	}
	batch.commit()
	return nil
}
