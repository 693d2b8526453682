// Package pushgateway receives pushed metrics by the API of Prometheus' Pushgateway: groups persist until they are
// deleted, also over restarts, and are appended each interval.
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

	"hwsagent/internal/exposition"
	"hwsagent/receivers"
)

// GroupsFull is the reason of pushes refused because too many groups are kept.
const GroupsFull receivers.Reason = "groups_full"

// Receiver keeps the groups and serves the API. It is safe for concurrent use.
type Receiver struct {
	store *Store
	gate  *receivers.Gate
	http.Handler

	// ending serialises changes to the exposed series, and the reading of ended series until the log has their stale
	// markers. This way a series cannot be ended after it was pushed again.
	ending *semaphore.Weighted
}

// regroup is [Store.change] for changes to the exposed series. It may also fail with the error of ctx.
func (p *Receiver) regroup(ctx context.Context, labels map[string]string, f func(old *group) *group) (*group, error) {
	if err := p.ending.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer p.ending.Release(1)
	return p.store.change(labels, f)
}

// New returns a receiver that stores its groups in s.
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

// framed returns r with the gate's name for the framing format, which the Pushgateway's API calls snappy. It does not
// change r.
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

// push adds the families of a request to a group: PUT replaces all, POST those with the same names. Removed series are
// marked stale before the answer if the log accepts that, or else as soon as it does.
//
// As in the Pushgateway, a refused push leaves its time in the group, which it creates if necessary; a push that cannot
// be read leaves no trace.
func (p *Receiver) push(r *receivers.Request, labels map[string]string) error {
	if why := r.CheckLabels(ownLabels(labels, failureTime)); why != nil {
		return why
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
		p.store.log.Warn("Cannot store the time of a refused push", "err", failed)
	}
	return refusal(err)
}

// take adds decoded families to their group, which it returns.
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

// fail records the time of a refused push in the group, and creates the group if necessary and if there is room.
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
		return nil // no room for it; the refused push is counted all the same
	}
	return err
}

// refusal returns the answer to an error of the store.
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

// check applies the limits of the receiver to the samples, as if they were stored now.
func (p *Receiver) check(r *receivers.Request, families map[string]family) error {
	b := r.Batch()
	defer b.Rollback()
	g := &group{families: families}
	later := time.Now().Add(24 * time.Hour).UnixMilli() // a time at which no series has a sample
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

// remove deletes a group. Its series are marked stale before the answer if the log accepts that, or else as soon as it
// does.
func (p *Receiver) remove(r *receivers.Request, labels map[string]string) error {
	gone, err := p.regroup(r.Context(), labels, func(old *group) *group {
		if old == nil || old.deleted {
			return old
		}
		return (&group{labels: old.labels, deleted: true}).after(old)
	})
	if err != nil && !errors.Is(err, errSync) {
		// A full disk has no room for the remaining work, but removing a file always works.
		_, err = p.regroup(r.Context(), labels, func(old *group) *group {
			gone = (&group{labels: labels, deleted: true}).after(old)
			return nil
		})
	}
	if err == nil || errors.Is(err, errSync) {
		p.end(r.Context(), gone)
	}
	if err != nil {
		return refusal(err)
	}
	return nil
}

// end marks the ended series of a group stale; the group may be nil.
func (p *Receiver) end(ctx context.Context, g *group) {
	if g == nil || !g.deleted && len(g.ended) == 0 {
		return
	}
	if err := p.settle(ctx, g); err != nil {
		p.store.log.Warn("Cannot mark series of a pushed group stale; retrying each interval", "err", err)
	}
}

// Settle marks ended series stale if that failed at first: the log accepted nothing, or the agent was killed.
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

// Each calls f for each sample of each group, including push_time_seconds, until f returns an error or ctx ends.
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

// ownLabels returns the labels of a series that a group has in addition to the pushed ones.
func ownLabels(group map[string]string, name string) labels.Labels {
	lb := labels.NewBuilder(labels.FromMap(group))
	lb.Set(model.MetricNameLabel, name)
	return lb.Labels()
}
