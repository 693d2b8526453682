package families

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/wire"
)

// Sender sends the families of one target. New makes one. Due and Offer are for one goroutine, Run for another one.
type Sender struct {
	config  config.MetadataConfig
	post    func(context.Context, client.Request) client.Answer // counts and notes it
	gate    *gate.Gate
	metrics *metrics.Target
	pending chan []prompb.MetricMetadata // of length 1: the newest round
	next    time.Time                    // of the goroutine that offers
}

// New makes a sender. post sends a request; each waits for the gate to be open. m may be nil.
func New(c config.MetadataConfig, post func(context.Context, client.Request) client.Answer, g *gate.Gate, m *metrics.Target) *Sender {
	return &Sender{config: c, post: post, gate: g, metrics: m, pending: make(chan []prompb.MetricMetadata, 1)}
}

// Due reports whether it is time for another round. It is cheap.
func (m *Sender) Due(now time.Time) bool { return m.config.Send && !now.Before(m.next) }

// Offer hands the present metadata over if a round is due. It is called only while the target takes data.
func (m *Sender) Offer(now time.Time, present func() []prompb.MetricMetadata) {
	if !m.Due(now) {
		return
	}
	m.next = now.Add(time.Duration(m.config.SendInterval))
	all := present()
	if len(all) == 0 {
		m.next = now.Add(min(time.Duration(m.config.SendInterval), 5*time.Second)) // none read yet
		return
	}
	select {
	case <-m.pending: // a round that was not begun; this one is newer
	default:
	}
	m.pending <- all
}

// Run sends what is offered until ctx is done. A round ends at the first request that
// is not taken: the rest comes with the next.
func (m *Sender) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case round := <-m.pending:
			for batch := range slices.Chunk(round, m.config.MaxSamplesPerSend) {
				if ctx.Err() != nil || !m.send(ctx, batch) {
					break
				}
			}
		}
	}
}

func (m *Sender) send(ctx context.Context, batch []prompb.MetricMetadata) bool {
	body := wire.Body(&prompb.WriteRequest{Metadata: batch})
	counts := metrics.Counts{metrics.Metadata: len(batch)}
	p, err := m.gate.EnterOpen(ctx)
	if err != nil {
		return false
	}
	m.metrics.Sending(counts, len(body), false)
	a := m.post(ctx, client.Request{Body: body})
	if a.RetryAfter > 0 || a.Status == http.StatusTooManyRequests {
		m.gate.Failed(p, a.String(), a.RetryAfter, true) // it is the target's, not this request's
	} else {
		m.gate.Release(p)
	}
	if !a.Accepted() {
		m.metrics.Failed(counts)
		return false
	}
	return true
}
