// Package replay sends a part of the log to a target once more, beside the target's queue. It decides what is sent, and when
// the target takes so little that going on makes no sense. Its tests are in package remotewrite, beside the log and the receiver that they play with.
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
	patience       = 2 * time.Minute // without an answer that takes or refuses samples
	grace          = 3 * time.Second // for the request under way when the replay is stopped
	extraRequests  = 64              // requests to take a refused one apart
	barrenRequests = 3               // requests in a row of which nothing was taken, until it ends
)

// errNotNewer means that the first sample was not taken as remote write 2.0, perhaps because
// the target does not read that.
var errNotNewer = errors.New("the target may not take remote write 2.0")

// Sender sends one request and reports what came of it; see [client.Client], which implements it.
type Sender interface {
	Send(ctx context.Context, r client.Request) client.Answer
}

// Options say what a replay sends, and to whom.
type Options struct {
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
	o       Options
	series  seriesForms
	encoder wire.Encoder
	backoff pace.Backoff
	version wire.Version // 2.0 if the entry asks for it, until the target does not take it
	limit   int          // samples in a request; 413 lowers it

	selected map[uint64]bool // series of which a sample was selected, by hash
	count    Count
	batch    []sample
	read     uint64 // the last commit that was given
	groups   groups
	body     []byte
	tested   bool             // a sample was taken
	single   bool             // a request was refused: from then on, each has one sample of a series at most
	barren   int              // requests in a row of which nothing was taken
	fertile  uint64           // the commit before the first of these
	newest   map[uint64]int64 // of a request that was refused: each series' last sample
	next     time.Time        // when the rate lets the next request go
}

// New makes a replay of nothing yet.
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

// Add takes what is asked for from an entry, and sends requests as they fill. The error is
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

// End sends what is left.
func (r *Replay) End(ctx context.Context) error {
	for len(r.batch) > 0 {
		if err := r.sendBatch(ctx); err != nil {
			return err
		}
	}
	return nil
}
