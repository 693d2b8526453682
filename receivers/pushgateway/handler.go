// Package pushgateway receives pushed metrics by the API of Prometheus' Pushgateway: groups
// that stay until they are deleted, over restarts, too, and are appended each interval.
//
// Source: https://github.com/prometheus/pushgateway/blob/master/README.md#api.
package pushgateway

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"

	"hwsagent/receivers"
	"hwsagent/receivers/exposition"
)

// GroupsFull is the reason of pushes that are refused because of the groups that are kept.
const GroupsFull receivers.Reason = "groups_full"

// Receiver keeps the groups and serves the API. It is safe for concurrent use.
type Receiver struct {
	store *Store
	gate  *receivers.Gate
	http.Handler
}

// New makes a receiver that keeps its groups in s.
func New(g *receivers.Gate, s *Store) *Receiver {
	p := &Receiver{store: s, gate: g}
	push := g.Handler(p.change, nil)
	p.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.EscapedPath(); {
		case len(path) > len("/metrics/") && path[:len("/metrics/")] == "/metrics/":
			push.ServeHTTP(w, r)
		case path == "/-/healthy" || path == "/-/ready":
			w.WriteHeader(http.StatusOK)
		default:
			http.NotFound(w, r)
		}
	})
	return p
}

// change serves one push or deletion.
func (p *Receiver) change(w http.ResponseWriter, r *receivers.Request) error {
	group, err := groupOf(r.URL.EscapedPath())
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
// place of those with the same names.
func (p *Receiver) push(r *receivers.Request, labels map[string]string) error {
	families, err := parse(r, labels)
	if err == nil {
		err = p.check(r, families)
	}
	now := time.Now()
	if err != nil {
		// As the Pushgateway: the group tells that its last push failed. One that is not
		// there is not made for that.
		failed := p.store.change(labels, func(old *group) *group {
			if old == nil {
				return nil
			}
			next := *old
			next.failed = now
			return &next
		})
		if failed != nil {
			p.store.log.Warn("Cannot note the time of a push that was refused", "err", failed)
		}
		return err
	}
	return refusal(p.store.change(labels, func(old *group) *group {
		next := &group{labels: labels, families: families, pushed: now}
		if old != nil {
			next.failed = old.failed
			if r.Method == http.MethodPost {
				next.families = maps.Clone(old.families)
				maps.Copy(next.families, families)
			}
		}
		return next
	}))
}

// refusal is how an error of the store is answered.
func refusal(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errFull):
		return receivers.Refuse(GroupsFull, http.StatusRequestEntityTooLarge, "%s", err)
	}
	r := receivers.Refuse(receivers.LogFailed, http.StatusServiceUnavailable, "%s", err)
	r.RetryAfter = 10 * time.Second
	return r
}

// check puts the samples through the bounds of the receiver, as if they were stored now.
func (p *Receiver) check(r *receivers.Request, families map[string][]byte) error {
	b := r.Batch()
	defer b.Rollback()
	g := &group{families: families}
	later := time.Now().Add(24 * time.Hour).UnixMilli() // a time that no series has a sample of
	err := exposition.Parse(g.body(), exposition.Protobuf, func(s *exposition.Sample) error {
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

// remove deletes a group. Its series are marked stale before the answer.
func (p *Receiver) remove(r *receivers.Request, labels map[string]string) error {
	var gone *group
	err := p.store.change(labels, func(old *group) *group {
		gone = old
		return nil
	})
	if err != nil || gone == nil {
		return refusal(err)
	}
	b := r.Batch()
	defer b.Rollback()
	// A round may have had this very millisecond, and a series has one value for it.
	at, stale := time.Now().UnixMilli()+1, math.Float64frombits(value.StaleNaN)
	err = each(gone, func(s *exposition.Sample) error {
		if err := b.Series(s.Labels, s.Family, s.Meta); err != nil {
			return err
		}
		return b.Append(0, at, stale, nil, nil)
	})
	if err == nil {
		_, err = b.Commit()
	}
	if err != nil {
		// The group is gone, and the next round marks what it had stale once more.
		p.store.log.Warn("Cannot mark a deleted group stale at once", "err", err)
	}
	return nil
}

// Each calls f for each sample of each group, that of push_time_seconds included, until f
// returns an error or ctx ends.
func (p *Receiver) Each(ctx context.Context, f func(*exposition.Sample) error) error {
	for _, g := range p.store.all() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := each(g, f); err != nil {
			return err
		}
	}
	return nil
}

func each(g *group, f func(*exposition.Sample) error) error {
	if err := exposition.Parse(g.body(), exposition.Protobuf, f); err != nil {
		return err
	}
	for _, own := range []struct {
		name, help string
		at         time.Time
	}{
		{pushTime, "Last Unix time when changing this group succeeded.", g.pushed},
		{failureTime, "Last Unix time when changing this group failed.", g.failed},
	} {
		lb := labels.NewBuilder(labels.FromMap(g.labels))
		lb.Set(model.MetricNameLabel, own.name)
		err := f(&exposition.Sample{
			Labels: lb.Labels(), Family: own.name, Meta: metadata.Metadata{Type: model.MetricTypeGauge, Help: own.help}, V: float64(millis(own.at)) / 1000,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
