// Package replay sends a part of the log to a target again, independently of the target's queue. It decides which samples to send, and when
// the target accepts so few of them that it gives up. Its tests are in package remotewrite, with the log and the test receiver.
package replay

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
	patience       = 2 * time.Minute // longest time without an answer that accepts or refuses samples
	grace          = 3 * time.Second // for the request in flight when the replay is stopped
	extraRequests  = 64              // budget of requests to bisect a refused one
	barrenRequests = 3               // consecutive requests without an accepted sample that end the replay
)

// errNotNewer means that the first sample was not accepted as remote write 2.0, perhaps because
// the target does not support 2.0.
var errNotNewer = errors.New("the target may not accept remote write 2.0")

// Sender sends one request and returns its answer; [client.Client] implements it.
type Sender interface {
	Send(ctx context.Context, r client.Request) client.Answer
}

// Options configure a replay.
type Options struct {
	Config         config.Config // of the target
	ExternalLabels labels.Labels
	Sender         Sender // nil: a dry run that only counts

	From, To time.Time         // timestamps of samples: From and later, before To
	Matchers []*labels.Matcher // applied to the labels as sent; all must match
	Rate     float64           // samples per second at most; 0: no limit
	After    uint64            // the replay continues after this commit; 0: it is not a continuation

	Retrying func(client.Answer) // called at the first temporary failure of a request; may be nil
	Rand     func() float64      // in [0, 1); nil: the runtime's
}

// Replay sends a part of the log to a target again, independently of the target's queue. Samples
// go in log order, one request at a time. The first sample goes alone; if it is
// not accepted, the replay ends; a continuation passes late samples of its first commit before that. Temporary failures (5xx, 429, no answer) are retried for two
// minutes. A refused request is bisected, with at most 64 further requests; samples refused alone
// are counted and skipped. Three consecutive requests without an accepted sample end the replay.
//
// For one goroutine.
type Replay struct {
	o       Options
	series  seriesForms
	encoder wire.Encoder
	backoff pace.Backoff
	version wire.Version // 2.0 if the entry asks for it, until the target does not accept it
	limit   int          // most samples of a request; 413 lowers it

	selected map[uint64]bool // series of which a sample was selected, by hash
	count    Count
	batch    []sample
	read     uint64 // the last commit read from the log
	groups   groups
	body     []byte
	tested   bool             // a sample was accepted
	single   bool             // a request was refused: later ones have at most one sample per series
	barren   int              // consecutive requests without an accepted sample
	fertile  uint64           // the commit before the first of these
	good     sample           // the last that was accepted
	newest   map[uint64]int64 // timestamp of each series' last sample in a refused request
	next     time.Time        // when the rate limit allows the next request
}

// New makes a replay with no samples yet.
func New(o Options) (*Replay, error) {
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
	r := &Replay{
		o: o, version: version, limit: q.MaxSamplesPerSend,
		series:   seriesForms{labels: config.NewRelabeler(o.ExternalLabels, o.Config.WriteRelabelConfigs), forms: wire.NewForms(wire.V1), matchers: o.Matchers},
		backoff:  pace.Backoff{Min: time.Duration(q.MinBackoff), Max: time.Duration(q.MaxBackoff)},
		selected: map[uint64]bool{},
	}
	if o.Config.Role() != config.RoleNone {
		if o.Config.Tenant() == "" {
			return nil, fmt.Errorf("make replay to %q: the entry has tenants and no default: name one of them, %s/TENANT", o.Config.TargetName(), o.Config.TargetName())
		}
		r.series.tenant = tenant.NewFilter(&o.Config, nil)
	}
	return r, nil
}

// Add selects the requested samples of an entry, and sends requests as they fill. The error is
// ctx's, or a *[Error].
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

// End sends the remaining samples.
func (r *Replay) End(ctx context.Context) error {
	for len(r.batch) > 0 {
		if err := r.sendBatch(ctx); err != nil {
			return err
		}
	}
	return nil
}
