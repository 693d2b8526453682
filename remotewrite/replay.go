package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/wal"
)

// Bounds of a replay.
const (
	replayPatience = 2 * time.Minute // without an answer that takes or refuses samples
	replayGrace    = 3 * time.Second // for the request under way when the replay is stopped
	replayExtra    = 64              // requests to take a refused one apart
	replayBarren   = 3               // requests in a row of which nothing was taken, until it ends
)

// errNotNewer means that the first sample was not taken as remote write 2.0, perhaps because
// the target does not read that.
var errNotNewer = errors.New("the target may not take remote write 2.0")

// ReplayOptions say what a replay sends, and to whom.
type ReplayOptions struct {
	Config         Config // the target's
	ExternalLabels labels.Labels
	Sender         Sender // nil: nothing is sent, all is counted

	From, To time.Time         // timestamps of samples: From and later, before To
	Matchers []*labels.Matcher // of the labels as they are sent; all must match
	Rate     float64           // samples per second at most; 0: no limit

	Rand func() float64 // in [0, 1); nil: the runtime's
}

// ReplayCount is what came of a replay so far. It has nothing to do with the ledger of the
// target's queue: what is replayed was appended, and accounted for, once before.
//
// Invariant: Selected = Delivered + Refused + Unconfirmed + Unsupported, plus what has no
// outcome yet.
type ReplayCount struct {
	Selected    uint64 // samples in the time and the series that were asked for
	Series      int    // of these samples
	Delivered   uint64 // answered by a 2xx
	Refused     uint64 // refused alone
	Unconfirmed uint64 // of refused requests, without it being sure that they are to blame: some may be stored
	Unsupported uint64 // of a kind that the protocol or the entry's settings exclude
	Filtered    uint64 // in that time, removed by write_relabel_configs

	Requests uint64
	Bytes    uint64 // of these

	Oldest, Newest time.Time // timestamps of the selected samples; zero if there are none

	// Refusals are those of single samples, by what the receiver said, at most maxRefusals.
	Refusals []ReplayRefusal

	// Done is the number of the last commit up to which every selected sample has its
	// outcome: a replay after it goes on where this one ended.
	Done uint64
}

// ReplayRefusal is one thing that the receiver said against samples, and the first sample
// that it said it of.
type ReplayRefusal struct {
	Status    int
	Text      string
	Samples   uint64
	Series    string
	Timestamp int64 // milliseconds
}

// maxRefusals bounds ReplayCount.Refusals; others are counted with the last one.
const maxRefusals = 20

// ReplayError ends a replay: the target does not take what is sent. Nothing of it is the
// queue's concern.
type ReplayError struct {
	First  bool // it was the first sample, alone: nothing else was sent
	Answer Answer
	Series string    // of the first sample that was not taken
	Time   time.Time // its timestamp
}

func (e *ReplayError) Error() string {
	if e.First {
		return fmt.Sprintf("the receiver does not take the first sample, %s of %s: %s", e.Series, e.Time.UTC().Format(time.RFC3339), e.Answer)
	}
	return fmt.Sprintf("the receiver takes nothing any more, from %s of %s on: %s", e.Series, e.Time.UTC().Format(time.RFC3339), e.Answer)
}

// Replay sends a part of the log to a target once more, beside the target's queue. Samples
// go in the order of the log, one request at a time; the first one goes alone, and if it is
// not taken nothing else is sent. What passes (5xx, 429, no answer) is tried again for two
// minutes. A refused request is taken apart, in at most 64 others, and what is refused alone
// is counted and left behind; where nothing of three requests is taken, the replay ends.
//
// It is for one goroutine.
type Replay struct {
	o       ReplayOptions
	cache   *seriesCache
	press   *press
	backoff backoff
	version Version // 2.0 if the entry asks for it, until the target does not take it
	limit   int     // samples in a request; 413 lowers it

	matched map[uint64]bool // by hash of the final labels
	series  map[uint64]bool // those of which a sample was selected
	count   ReplayCount
	batch   []point // seq is the number of the commit
	read    uint64  // the last commit that was given
	body    []byte
	tested  bool             // a sample was taken
	single  bool             // a request was refused: from then on, each has one sample of a series at most
	seen    hashSet          // scratch of that
	barren  int              // requests in a row of which nothing was taken
	fertile uint64           // the commit before the first of these
	newest  map[uint64]int64 // of a request that was refused: each series' last sample
	next    time.Time        // when the rate lets the next request go
}

// NewReplay makes a replay of nothing yet.
func NewReplay(o ReplayOptions) (*Replay, error) {
	q := o.Config.Queue
	if q.MaxSamplesPerSend < 1 || q.MinBackoff <= 0 || q.MaxBackoff < q.MinBackoff {
		return nil, fmt.Errorf("make replay: queue_config is out of bounds: %+v", q)
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}
	version := V1
	if o.Config.newerProtocol() {
		version = V2
	}
	cache := newSeriesCache(o.ExternalLabels, o.Config.WriteRelabelConfigs)
	if o.Config.role != roleNone {
		if o.Config.tenant == "" {
			return nil, fmt.Errorf("make replay to %q: the entry has tenants and no default: name one of them, %s/TENANT", o.Config.TargetName(), o.Config.TargetName())
		}
		cache.tenant = newTenantFilter(&o.Config, nil)
	}
	return &Replay{
		o: o, version: version, press: newPress(), limit: q.MaxSamplesPerSend,
		cache:   cache,
		backoff: backoff{min: time.Duration(q.MinBackoff), max: time.Duration(q.MaxBackoff)},
		matched: map[uint64]bool{}, series: map[uint64]bool{},
	}, nil
}

// Count is what came of it so far.
func (r *Replay) Count() ReplayCount {
	c := r.count
	c.Series = len(r.series)
	c.Done = r.read
	if len(r.batch) > 0 {
		c.Done = r.batch[0].seq - 1 // commits are numbered in order
	}
	if r.barren > 0 {
		c.Done = r.fertile
	}
	return c
}

// Sent is how many samples were selected and delivered so far.
func (r *Replay) Sent() (selected, delivered uint64) { return r.count.Selected, r.count.Delivered }

// Add takes what is asked for from an entry, and sends requests as they fill. The error is
// ctx's, or a *[ReplayError].
func (r *Replay) Add(ctx context.Context, e *wal.Entry) error {
	if e.Count() > 0 && e.MaxT >= r.o.From.UnixMilli() && e.MinT < r.o.To.UnixMilli() {
		r.take(e)
	}
	r.read = e.End.Commit
	for len(r.batch) >= r.limit {
		if err := r.sendBatch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// End sends what is left.
func (r *Replay) End(ctx context.Context) error {
	for len(r.batch) > 0 {
		if err := r.sendBatch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// take moves the samples of an entry that are asked for into the batch.
func (r *Replay) take(e *wal.Entry) {
	for i := range e.Samples {
		s := &e.Samples[i]
		if to := r.selects(s.Series, s.T); to != nil {
			r.put(point{series: to, seq: e.End.Commit, st: s.ST, t: s.T, v: s.V})
		}
	}
	for i := range e.Histograms {
		h := &e.Histograms[i]
		to := r.selects(h.Series, h.T)
		if to == nil {
			continue
		}
		p := point{series: to, seq: e.End.Commit, st: h.ST, t: h.T, kind: intHistogram, aux: &pointAux{}}
		if h.H != nil {
			p.aux.h = h.H.Copy()
		} else {
			p.kind, p.aux.fh = floatHistogram, h.FH.Copy()
		}
		r.put(p)
	}
}

// selects returns what the series is sent as, nil if the sample is not asked for.
func (r *Replay) selects(s *wal.Series, t int64) *series {
	if t < r.o.From.UnixMilli() || t >= r.o.To.UnixMilli() {
		return nil
	}
	to := r.cache.get(s)
	if to.dropped() {
		r.count.Filtered++
		return nil
	}
	ok, known := r.matched[to.hash]
	if !known {
		ok = r.matches(to.labels())
		r.matched[to.hash] = ok
	}
	if !ok {
		return nil
	}
	return to
}

func (r *Replay) matches(ls labels.Labels) bool {
	for _, m := range r.o.Matchers {
		if !m.Matches(ls.Get(m.Name)) {
			return false
		}
	}
	return true
}

func (r *Replay) put(p point) {
	r.note(p.series, p.t)
	r.batch = append(r.batch, p)
}

// note counts a selected sample.
func (r *Replay) note(s *series, t int64) {
	c, at := &r.count, time.UnixMilli(t)
	c.Selected++
	r.series[s.hash] = true
	if c.Oldest.IsZero() || at.Before(c.Oldest) {
		c.Oldest = at
	}
	if at.After(c.Newest) {
		c.Newest = at
	}
}

// sendBatch sends the first samples of the batch, as many as a request may have. They leave
// the batch when all of them have their outcome.
func (r *Replay) sendBatch(ctx context.Context) error {
	if r.leaveOut(); len(r.batch) == 0 {
		return nil
	}
	n := min(len(r.batch), r.limit)
	switch {
	case !r.tested && r.o.Sender != nil:
		n = 1
	case r.single:
		n = uniquePrefix(r.batch, n, &r.seen)
	}
	r.newest = nil
	taken, extra := r.count.Delivered, replayExtra
	last, err := r.deliver(ctx, r.batch[:n:n], &extra)
	if errors.Is(err, errNotNewer) {
		r.version = V1
		return r.sendBatch(ctx)
	}
	if err != nil {
		return err
	}
	switch {
	case r.o.Sender == nil || r.count.Delivered > taken:
		r.tested, r.barren = true, 0
	case !r.tested:
		return r.stopped(r.batch[0], last)
	default:
		if r.barren++; r.barren == 1 {
			r.fertile = r.batch[0].seq - 1
		}
		if r.barren == replayBarren {
			return r.stopped(r.batch[0], last)
		}
	}
	r.batch = append(r.batch[:0], r.batch[n:]...)
	return nil
}

// leaveOut counts what the version does not carry.
func (r *Replay) leaveOut() {
	r.batch = slices.DeleteFunc(r.batch, func(p point) bool {
		carried := r.o.Config.carries(r.version, &p)
		if !carried {
			r.count.Unsupported++
		}
		return !carried
	})
}

// stopped is the error of a sample that the target does not take.
func (r *Replay) stopped(p point, a Answer) error {
	return &ReplayError{First: !r.tested, Answer: a, Series: p.series.labels().String(), Time: time.UnixMilli(p.t)}
}

// deliver sends samples, in parts if they are refused together, until each has its outcome.
// It returns the last answer that was a refusal.
func (r *Replay) deliver(ctx context.Context, points []point, extra *int) (refusal Answer, err error) {
	a, err := r.send(ctx, points)
	if err != nil {
		return a, err
	}
	n := uint64(len(points))
	switch v := Classify(a, Policy{RetryOnRateLimit: true}); {
	case v == Delivered:
		written := n
		if a.Written.Known {
			written = uint64(a.Written.samples(len(points)))
		}
		r.count.Delivered += written
		r.count.Unconfirmed += n - written
		return Answer{}, nil
	case !r.tested && r.version == V2 && (v == Older || v == Suspect && !a.Written.Known || v == Retry && a.Status != 0):
		return a, errNotNewer
	case v == Hold, v == Discard, v == Older, v == Retry: // Retry: for too long
		return a, r.stopped(points[0], a)
	case n == 1:
		if r.tested {
			r.refused(points[0], a)
		}
		return a, nil
	case v == Split:
		r.limit = max(min(r.limit, len(points)/2), 1)
	case *extra < 2:
		r.count.Unconfirmed += n
		return a, nil
	default:
		*extra -= 2
		r.blame(points)
	}
	half := len(points) / 2
	for _, part := range [2][]point{points[:half], points[half:]} {
		b, err := r.deliver(ctx, part, extra)
		if err != nil {
			return b, err
		}
		if b.Status != 0 {
			a = b
		}
	}
	return a, nil
}

// blame notes which samples of a refused request can be shown to be bad by being refused
// alone. A receiver may have stored the good part of it, and then takes nothing of a
// series that is older than the last sample of that.
func (r *Replay) blame(points []point) {
	r.single = true
	if r.newest != nil {
		return // it is a part of the request
	}
	r.newest = map[uint64]int64{}
	for _, p := range points {
		r.newest[p.series.hash] = p.t
	}
}

// refused counts a sample that was refused alone.
func (r *Replay) refused(p point, a Answer) {
	if t, ok := r.newest[p.series.hash]; ok && t != p.t {
		r.count.Unconfirmed++
		return
	}
	r.count.Refused++
	for i := range r.count.Refusals {
		if have := &r.count.Refusals[i]; have.Status == a.Status && have.Text == a.Text || i == maxRefusals-1 {
			have.Samples++
			return
		}
	}
	r.count.Refusals = append(r.count.Refusals, ReplayRefusal{
		Status: a.Status, Text: a.Text, Samples: 1, Series: p.series.labels().String(), Timestamp: p.t,
	})
}

// send sends one request, again while its failure is one that passes. The error is ctx's.
func (r *Replay) send(ctx context.Context, points []point) (Answer, error) {
	r.body, _ = r.press.body(r.body[:0], r.version, points)
	if r.o.Sender == nil {
		r.count.Requests++
		r.count.Bytes += uint64(len(r.body))
		return Answer{Status: 204}, ctx.Err()
	}
	if err := r.pace(ctx, len(points)); err != nil {
		return Answer{}, err
	}
	began := time.Now()
	for attempt := 0; ; attempt++ {
		a := r.post(ctx, len(points), attempt)
		switch {
		case ctx.Err() != nil && a.Status == 0:
			return a, ctx.Err()
		case Classify(a, Policy{RetryOnRateLimit: true}) != Retry:
			r.backoff.ease(r.o.Rand())
			return a, nil
		}
		pause := max(r.backoff.next(r.o.Rand(), a.Status == 0), retryLate(a.RetryAfter, r.o.Rand()))
		if time.Since(began)+pause > replayPatience {
			return a, nil
		}
		if err := sleep(ctx, pause); err != nil {
			return a, err
		}
	}
}

// post sends the body. When ctx ends, the request gets a moment to end.
func (r *Replay) post(ctx context.Context, n, attempt int) Answer {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(replayGrace)
		defer t.Stop()
		select {
		case <-sending.Done():
		case <-t.C:
			cancel()
		}
	})
	defer stop()
	r.count.Requests++
	r.count.Bytes += uint64(len(r.body))
	a := r.o.Sender.Send(sending, Request{Body: r.body, Version: r.version, Samples: n, Attempt: attempt})
	a.Version, a.Samples = r.version, n
	return a
}

// pace waits until so many samples may go.
func (r *Replay) pace(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil || r.o.Rate <= 0 {
		return err
	}
	now := time.Now()
	if r.next.Before(now) {
		r.next = now
	}
	wait := r.next.Sub(now)
	r.next = r.next.Add(time.Duration(min(float64(n)/r.o.Rate*float64(time.Second), math.MaxInt64/4)))
	if wait == 0 {
		return nil
	}
	return sleep(ctx, wait)
}
