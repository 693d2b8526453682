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

// Sender sends the metadata of one target's metric families. New makes one. Due and Offer are for one goroutine, Run for another.
type Sender struct {
	config  config.MetadataConfig
	post    func(context.Context, client.Request) client.Answer // counts and records the answer
	gate    *gate.Gate
	metrics *metrics.Target
	pending chan []prompb.MetricMetadata // of length 1: the newest round
	next    time.Time                    // used by the goroutine that calls Offer
	failed  string                       // the last family of the request at which the last round ended; "": none. Used by Run
}

// New makes a sender. post sends a request; each waits for the gate to be open.
func New(c config.MetadataConfig, post func(context.Context, client.Request) client.Answer, g *gate.Gate, m *metrics.Target) *Sender {
	return &Sender{config: c, post: post, gate: g, metrics: m, pending: make(chan []prompb.MetricMetadata, 1)}
}

// Due reports whether it is time for another round. It is cheap.
func (m *Sender) Due(now time.Time) bool { return m.config.Send && !now.Before(m.next) }

// Offer passes the present metadata to Run if a round is due. Call it only while the target accepts data.
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
	case <-m.pending: // a round not begun; the new one replaces it
	default:
	}
	m.pending <- all
}

// Run sends offered rounds until ctx is done. A round ends at the first request that
// is not accepted: the next round sends everything again, and begins behind that request, which may be at fault itself.
func (m *Sender) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case round := <-m.pending:
			from := slices.IndexFunc(round, func(f prompb.MetricMetadata) bool { return f.MetricFamilyName > m.failed })
			round, m.failed = slices.Concat(round[max(from, 0):], round[:max(from, 0)]), ""
			for batch := range slices.Chunk(round, m.config.MaxSamplesPerSend) {
				if ctx.Err() != nil {
					break
				}
				if !m.send(ctx, batch) {
					m.failed = batch[len(batch)-1].MetricFamilyName
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
		m.gate.Failed(p, a.Why(), a.RetryAfter, true) // the failure concerns the target, not this request
	} else {
		m.gate.Release(p)
	}
	if !a.Accepted() {
		m.metrics.Failed(counts)
		return false
	}
	return true
}
