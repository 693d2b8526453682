// Package replay sends a part of the log to a target again, beside the target's queue and independently of it: a queue of its own reads the
// selected samples from an archive of the log. The package decides which samples these are, and when the target accepts so few of them that
// the replay ends.
package replay

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/remotewrite"
	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
)

// A replay ends when the target takes no request for so long.
const (
	patience = 2 * time.Minute  // for failures that may pass
	heldFor  = 20 * time.Second // of a target that took samples before; the queue tests it within 15 s of its recovery
	look     = 100 * time.Millisecond
)

// Options configure a replay.
type Options struct {
	Config         config.Config // of the target
	ExternalLabels labels.Labels
	Sender         remotewrite.Sender // nil: a dry run that only counts
	Archive        Archive            // it begins after the commit After

	From, To time.Time         // timestamps of samples: From and later, before To
	Matchers []*labels.Matcher // applied to the labels as sent; all must match
	Rate     float64           // samples per second at most; 0: no limit
	After    uint64            // the replay continues after this commit; 0: it is not a continuation

	Progress func(Count)  // may be nil; called after each commit of the log
	Logger   *slog.Logger // nil: none
}

// Count is the result of a replay so far. It is independent of the ledger of the target's queue: the replayed samples were
// appended, and accounted for, before.
//
// Invariant: Selected = Delivered + Refused + Unconfirmed + Unsupported, plus the samples without an outcome so far.
type Count struct {
	Selected    uint64 // samples in the requested time range and series
	Series      int    // of the selected samples
	Delivered   uint64 // answered by a 2xx
	Refused     uint64 // by the receiver
	Unconfirmed uint64 // refused, but they may be stored
	Unsupported uint64 // of a kind that the protocol or the entry's settings exclude
	Filtered    uint64 // in that time range, but not sent to this target: write_relabel_configs or the tenant exclude the series

	Requests uint64
	Bytes    uint64 // of the requests

	Oldest, Newest time.Time // timestamps of the selected samples; zero if there are none

	// Refusals are the receiver's answers to refused samples, at most maxRefusals.
	Refusals []Refusal

	// Done is the number of the last commit up to which every selected sample has its
	// outcome: a replay that starts after it continues where this one ended.
	Done uint64
}

// Refusal is one answer of the receiver to refused samples, and the first sample that got it.
type Refusal struct {
	Status    int
	Text      string
	Samples   uint64 // for which a request showed it
	Series    string
	Timestamp int64 // milliseconds
}

// maxRefusals bounds Count.Refusals; further ones are counted with the last one.
const maxRefusals = 20

// Error ends a replay because the target does not accept the samples. It does not affect the target's queue.
type Error struct {
	First bool   // no sample was accepted
	Why   string // the answer, or why there is none
}

// Error says whether the target took some of the samples before, and why it takes no more.
func (e *Error) Error() string {
	if e.First {
		return "the receiver accepts none of these samples: " + e.Why
	}
	return "the receiver accepts nothing any more: " + e.Why
}

// Run sends the selected samples in the order of the log and returns when each has its outcome. The error is ctx's, that of
// the log, or an *[Error]: the target accepts no requests at present, gave no answer for two minutes, or refused every sample.
// The count is right in each case. The entry's settings for 429, refusals, old samples and metadata do not apply: they
// concern its queue.
func Run(ctx context.Context, o Options) (Count, error) {
	cfg := o.Config.Routed()
	d := config.DefaultConfig()
	cfg.Queue.MinShards, cfg.Queue.MaxShards = 1, 1 // a continuation knows where the one request in flight was
	cfg.Queue.SampleAgeLimit, cfg.Queue.RetryOnRateLimit = 0, true
	cfg.Target.OnRefusal, cfg.Target.FutureLimit, cfg.Target.CatchUpRateLimit = d.Target.OnRefusal, 0, 0
	cfg.Metadata.Send, cfg.SendExemplars = false, false
	if o.Config.Role() != config.RoleNone && o.Config.Tenant() == "" {
		return Count{}, fmt.Errorf("make replay to %q: the entry has tenants and no default: name one of them, %s/TENANT", o.Config.TargetName(), o.Config.TargetName())
	}
	from, sender, letters := newSource(&o), &meter{next: o.Sender}, &letters{}
	q, err := remotewrite.New(remotewrite.Options{
		Name: o.Config.TargetName(), Config: cfg, Source: from, Sender: sender, DeadLetters: letters, Logger: o.Logger,
	})
	if err != nil {
		return Count{}, err
	}
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { q.Run(sending) })
	err = watch(ctx, q, from)
	from.stop()
	stop()
	wg.Wait()
	c := from.counts()
	c.Requests, c.Bytes, c.Refusals = sender.requests.Load(), sender.bytes.Load(), letters.all
	select {
	case <-from.done: // perhaps by the last answer, after an interrupt
		err = from.broken
	default:
	}
	if err == nil && c.Delivered == 0 && len(c.Refusals) > 0 {
		err = &Error{First: true, Why: fmt.Sprintf("%d %s", c.Refusals[0].Status, c.Refusals[0].Text)}
	}
	return c, err
}

// watch returns nil when all samples have their outcome, or why the replay ends before.
func watch(ctx context.Context, q *remotewrite.Queue, from *source) error {
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-from.done:
			return nil
		case <-ticks.C:
		}
		st := q.Status()
		down := time.Since(st.DownSince)
		switch {
		case st.DownSince.IsZero():
			continue
		case st.State == remotewrite.StateHeld && (st.Sent == 0 || down >= heldFor):
		case down < patience:
			continue
		}
		return &Error{First: st.Sent == 0, Why: st.LastError}
	}
}

// meter counts requests. It answers those of a dry run itself.
type meter struct {
	next            remotewrite.Sender // nil: a dry run
	requests, bytes atomic.Uint64
}

// Send implements remotewrite.Sender.
func (m *meter) Send(ctx context.Context, r client.Request) client.Answer {
	m.requests.Add(1)
	m.bytes.Add(uint64(len(r.Body)))
	if m.next != nil {
		return m.next.Send(ctx, r)
	}
	all := client.Written{Known: r.Version == wire.V2, Samples: uint64(r.Samples)} // #nosec G115 -- a length
	return client.Answer{Status: 204, Written: all}
}

// letters counts what the receiver answered to refused samples. It implements remotewrite.DeadLetters.
type letters struct {
	mu  sync.Mutex
	all []Refusal
}

// Put implements remotewrite.DeadLetters.
func (l *letters) Put(all []remotewrite.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range all {
		l.add(Refusal{Status: x.Status, Text: x.Text, Samples: uint64(max(x.Samples, 1)), Series: x.Series, Timestamp: x.Timestamp}) // #nosec G115 -- positive
	}
	return nil
}

func (l *letters) add(r Refusal) {
	for i := range l.all {
		if have := &l.all[i]; have.Status == r.Status && have.Text == r.Text || i == maxRefusals-1 {
			have.Samples += r.Samples
			return
		}
	}
	l.all = append(l.all, r)
}

// List implements remotewrite.DeadLetters.
func (l *letters) List() ([]remotewrite.Letter, error) { return nil, nil }
