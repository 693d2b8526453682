// Package pushgateway receives pushed metrics by the API of Prometheus' Pushgateway: groups
// that stay until they are deleted, over restarts, too, and are appended each interval.
//
// Source: https://github.com/prometheus/pushgateway/blob/master/README.md#api.
package pushgateway

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"golang.org/x/sync/semaphore"

	"hwsagent/inputs/exposition"
	"hwsagent/receivers"
)

// GroupsFull is the reason of pushes that are refused because of the groups that are kept.
const GroupsFull receivers.Reason = "groups_full"

// Receiver keeps the groups and serves the API. It is safe for concurrent use.
type Receiver struct {
	store *Store
	gate  *receivers.Gate
	http.Handler

	// ending is for one at a time: who changes what groups show, or looks at what they show until
	// the log has the markers of what they do not. So no series ends that is pushed again.
	ending *semaphore.Weighted
}

// regroup is [Store.change] for what changes the series that groups show. It may also fail as ctx does.
func (p *Receiver) regroup(ctx context.Context, labels map[string]string, f func(old *group) *group) (*group, error) {
	if err := p.ending.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer p.ending.Release(1)
	return p.store.change(labels, f)
}

// New makes a receiver that keeps its groups in s.
func New(g *receivers.Gate, s *Store) *Receiver {
	p := &Receiver{store: s, gate: g, ending: semaphore.NewWeighted(1)}
	push := g.Handler(p.change, nil, checkType)
	p.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case strings.HasPrefix(path, "/metrics/"):
			push.ServeHTTP(w, framed(r))
		case path == "/-/healthy" || path == "/-/ready":
			w.WriteHeader(http.StatusOK)
		default:
			http.NotFound(w, r)
		}
	})
	return p
}

// framed is r with the name that the gate knows for what the Pushgateway's API calls snappy,
// which is the framing format. r itself is not changed.
func framed(r *http.Request) *http.Request {
	const header = "Content-Encoding"
	if !strings.EqualFold(strings.TrimSpace(r.Header.Get(header)), "snappy") {
		return r
	}
	out := r.WithContext(r.Context())
	out.Header = r.Header.Clone()
	out.Header.Set(header, receivers.SnappyFramed)
	return out
}

// change serves one push or deletion.
func (p *Receiver) change(w http.ResponseWriter, r *receivers.Request) error {
	group, err := groupOf(r.URL.Path)
	if err != nil {
		return err
	}
	switch r.Method {
	case http.MethodPut, http.MethodPost:
		if err := p.push(r, group); err != nil {
			return err
		}
		w.WriteHeader(http.StatusOK)
		return nil
	case http.MethodDelete:
		if err := p.remove(r, group); err != nil {
			return err
		}
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	w.Header().Set("Allow", "PUT, POST, DELETE")
	return receivers.Refuse(receivers.BadRequest, http.StatusMethodNotAllowed, "push with PUT or POST, delete with DELETE")
}

// push takes the families of a request into a group: PUT in the place of all, POST in the
// place of those with the same names. Series that are in the group no longer are marked stale
// before the answer, if the log takes that, and else as soon as it does.
//
// As in the Pushgateway, a push that is refused leaves its time with the group, which it makes
// if need be; one that cannot be read leaves nothing.
func (p *Receiver) push(r *receivers.Request, labels map[string]string) error {
	if err := r.CheckLabels(ownLabels(labels, failureTime)); err != nil {
		return err
	}
	kept := newKeeper(labels, r.Take)
	if err := read(r, kept.keep); err != nil {
		return err
	}
	now := time.Now()
	next, err := p.take(r, kept, now)
	if err == nil {
		p.end(r.Context(), next)
		return nil
	}
	if failed := p.fail(r.Context(), labels, now); failed != nil {
		p.store.log.Warn("Cannot note the time of a push that was refused", "err", failed)
	}
	return refusal(err)
}

// take takes families that were read into their group, which it returns.
func (p *Receiver) take(r *receivers.Request, kept *keeper, now time.Time) (*group, error) {
	if kept.refused != nil {
		return nil, kept.refused
	}
	labels, families := kept.group, kept.out
	if err := p.check(r, families); err != nil {
		return nil, err
	}
	return p.regroup(r.Context(), labels, func(old *group) *group {
		next := &group{labels: labels, families: families, pushed: now}
		if old != nil && !old.deleted {
			next.failed = old.failed
			if r.Method == http.MethodPost {
				next.families = maps.Clone(old.families)
				maps.Copy(next.families, families)
			}
		}
		return next.after(old)
	})
}

// fail notes with the group that a push was refused, and makes the group if need be and if there
// is room for it.
func (p *Receiver) fail(ctx context.Context, labels map[string]string, now time.Time) error {
	_, err := p.regroup(ctx, labels, func(old *group) *group {
		if old == nil || old.deleted {
			return (&group{labels: labels, families: map[string]family{}, failed: now}).after(old)
		}
		next := *old
		next.failed = now
		return &next
	})
	if errors.Is(err, errFull) || errors.Is(err, errClash) || errors.Is(err, errKind) {
		return nil // there is no place for it; that the push was refused is counted all the same
	}
	return err
}

// refusal is how an error of the store is answered.
func refusal(err error) error {
	switch {
	case errors.Is(err, errFull):
		return receivers.Refuse(GroupsFull, http.StatusRequestEntityTooLarge, "%s", err)
	case errors.Is(err, errClash):
		return receivers.Refuse(receivers.Duplicate, http.StatusBadRequest, "%s", err)
	case errors.Is(err, errKind):
		return receivers.Refuse(receivers.Malformed, http.StatusBadRequest, "%s", err)
	case !errors.Is(err, errDisk):
		return err
	}
	r := receivers.Refuse(receivers.LogFailed, http.StatusServiceUnavailable, "%s", err)
	r.RetryAfter = 10 * time.Second
	return r
}

// check puts the samples through the bounds of the receiver, as if they were stored now.
func (p *Receiver) check(r *receivers.Request, families map[string]family) error {
	b := r.Batch()
	defer b.Rollback()
	g := &group{families: families}
	later := time.Now().Add(24 * time.Hour).UnixMilli() // a time that no series has a sample of
	err := exposition.Each(r.Context(), g.body(), exposition.Protobuf, func(s *exposition.Sample) error {
		if err := b.Series(s.Labels, s.Family, s.Meta); err != nil {
			return err
		}
		return b.Append(s.ST, later, s.V, s.H, s.FH)
	})
	if err != nil {
		return err
	}
	return b.Verdict()
}

// remove deletes a group. Its series are marked stale before the answer, if the log takes that,
// and else as soon as it does.
func (p *Receiver) remove(r *receivers.Request, labels map[string]string) error {
	gone, err := p.regroup(r.Context(), labels, func(old *group) *group {
		if old == nil || old.deleted {
			return old
		}
		return (&group{labels: old.labels, deleted: true}).after(old)
	})
	if err != nil {
		// A full disk has no room for what is left to do, but a file can always be removed.
		_, err = p.regroup(r.Context(), labels, func(old *group) *group {
			gone = (&group{labels: labels, deleted: true}).after(old)
			return nil
		})
	}
	if err != nil {
		return refusal(err)
	}
	p.end(r.Context(), gone)
	return nil
}

// end marks stale what has ended of a group, which may be nil.
func (p *Receiver) end(ctx context.Context, g *group) {
	if g == nil || !g.deleted && len(g.ended) == 0 {
		return
	}
	if err := p.settle(ctx, g); err != nil {
		p.store.log.Warn("Cannot mark stale at once what has left a pushed group; that is tried again each interval", "err", err)
	}
}

// Settle marks stale what has ended where that could not be done at once: the log took nothing, or
// the agent was killed.
func (p *Receiver) Settle(ctx context.Context) error {
	var errs []error
	for _, g := range p.store.unsettled() {
		errs = append(errs, p.settle(ctx, g))
	}
	return errors.Join(errs...)
}

// endsAtOnce bounds how many series one commit marks stale.
const endsAtOnce = 10_000

func (p *Receiver) settle(ctx context.Context, g *group) error {
	if err := p.ending.Acquire(ctx, 1); err != nil {
		return err
	}
	defer p.ending.Release(1)
	var gone []labels.Labels
	flush := func() error {
		defer clear(gone)
		err := p.gate.MarkStale(ctx, gone)
		gone = gone[:0]
		return err
	}
	add := func(ls labels.Labels) error {
		if p.store.isShown(ls.Hash()) {
			return nil
		}
		if gone = append(gone, ls.Copy()); len(gone) == endsAtOnce {
			return flush()
		}
		return nil
	}
	if err := exposition.Each(ctx, g.ended, exposition.Protobuf, func(s *exposition.Sample) error { return add(s.Labels) }); err != nil {
		return err
	}
	if g.deleted {
		for _, name := range []string{pushTime, failureTime} {
			if err := add(ownLabels(g.labels, name)); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return p.store.settle(g)
}

// Each calls f for each sample of each group, that of push_time_seconds included, until f
// returns an error or ctx ends.
func (p *Receiver) Each(ctx context.Context, f func(*exposition.Sample) error) error {
	for _, g := range p.store.all() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := each(ctx, g, f); err != nil {
			return err
		}
	}
	return nil
}

func each(ctx context.Context, g *group, f func(*exposition.Sample) error) error {
	if err := exposition.Each(ctx, g.body(), exposition.Protobuf, f); err != nil {
		return err
	}
	for _, own := range []struct {
		name, help string
		at         time.Time
	}{
		{pushTime, "Last Unix time when changing this group succeeded.", g.pushed},
		{failureTime, "Last Unix time when changing this group failed.", g.failed},
	} {
		err := f(&exposition.Sample{
			Labels: ownLabels(g.labels, own.name), Family: own.name, Meta: metadata.Metadata{Type: model.MetricTypeGauge, Help: own.help}, V: float64(millis(own.at)) / 1000,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ownLabels are those of one of the series that a group has besides what is pushed.
func ownLabels(group map[string]string, name string) labels.Labels {
	lb := labels.NewBuilder(labels.FromMap(group))
	lb.Set(model.MetricNameLabel, name)
	return lb.Labels()
}
