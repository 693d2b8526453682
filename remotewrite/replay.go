package remotewrite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/pace"
	"hwsagent/remotewrite/tenant"
	"hwsagent/remotewrite/wire"
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
	Config         config.Config // the target's
	ExternalLabels labels.Labels
	Sender         Sender // nil: nothing is sent, all is counted

	From, To time.Time         // timestamps of samples: From and later, before To
	Matchers []*labels.Matcher // of the labels as they are sent; all must match
	Rate     float64           // samples per second at most; 0: no limit

	Retrying func(client.Answer) // told of a failure that passes, for the first of a request; may be nil
	Rand     func() float64      // in [0, 1); nil: the runtime's
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
	press   *EncoderPool
	backoff pace.Backoff
	version wire.Version // 2.0 if the entry asks for it, until the target does not take it
	limit   int          // samples in a request; 413 lowers it

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
	version := wire.V1
	if o.Config.AsksForV2() {
		version = wire.V2
	}
	cache := newSeriesCache(o.ExternalLabels, o.Config.WriteRelabelConfigs)
	if o.Config.Role() != config.RoleNone {
		if o.Config.Tenant() == "" {
			return nil, fmt.Errorf("make replay to %q: the entry has tenants and no default: name one of them, %s/TENANT", o.Config.TargetName(), o.Config.TargetName())
		}
		cache.tenant = tenant.NewFilter(&o.Config, nil)
	}
	return &Replay{
		o: o, version: version, press: NewEncoderPool(), limit: q.MaxSamplesPerSend,
		cache:   cache,
		backoff: pace.Backoff{Min: time.Duration(q.MinBackoff), Max: time.Duration(q.MaxBackoff)},
		matched: map[uint64]bool{}, series: map[uint64]bool{},
	}, nil
}

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
