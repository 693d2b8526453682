package remotewrite

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/metrics"
	"hwsagent/remotewrite/wire"
)

// maxFamilies bounds the families whose metadata is sent to a target, so that a
// runaway probe cannot fill memory and wire with help texts.
const maxFamilies = 20000

// families lists the metadata of all families that have a series which is sent, by
// name, at most maxFamilies. Names are those that the appender gave, as with
// Prometheus: rules that rename metrics do not rename families. Where series of one
// family differ, one of them counts.
func (c *seriesCache) families() []prompb.MetricMetadata {
	all := map[string]prompb.MetricMetadata{}
	for i := range c.slots {
		s := c.slots[i].to
		if s == nil || s.dropped() || len(all) == maxFamilies {
			continue
		}
		m := s.from.Meta()
		if m.Type == "" && m.Help == "" && m.Unit == "" {
			continue
		}
		name := s.from.Family()
		if name == "" {
			name = s.from.Labels.Get(model.MetricNameLabel)
		}
		if _, known := all[name]; known || name == "" {
			continue
		}
		all[name] = prompb.MetricMetadata{
			MetricFamilyName: model.EscapeName(name, model.UnderscoreEscaping), // legal for remote write 1.0
			Type:             prompb.FromMetadataType(m.Type),
			Help:             strings.ToValidUTF8(m.Help, "\uFFFD"),
			Unit:             strings.ToValidUTF8(m.Unit, "\uFFFD"),
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b prompb.MetricMetadata) int {
		return strings.Compare(a.MetricFamilyName, b.MetricFamilyName)
	})
}

// metadataSender sends metric metadata to a target every send_interval, as remote write 1.0
// does it: in requests of their own. It is not kept in any ledger: the next round
// sends everything again.
type metadataSender struct {
	config  config.MetadataConfig
	post    func(context.Context, client.Request) client.Answer // counts and notes it
	gate    *gate.Gate
	metrics *metrics.Target
	pending chan []prompb.MetricMetadata // of length 1: the newest round
	next    time.Time                    // of the reader's goroutine
}

func newMetadata(c config.MetadataConfig, post func(context.Context, client.Request) client.Answer, g *gate.Gate, m *metrics.Target) *metadataSender {
	return &metadataSender{config: c, post: post, gate: g, metrics: m, pending: make(chan []prompb.MetricMetadata, 1)}
}

// due reports whether it is time for another round. It is cheap.
func (m *metadataSender) due(now time.Time) bool { return m.config.Send && !now.Before(m.next) }

// offer hands the present metadata over if a round is due. The reader's goroutine
// calls it, and only while the target takes data.
func (m *metadataSender) offer(now time.Time, c *seriesCache) {
	if !m.due(now) {
		return
	}
	m.next = now.Add(time.Duration(m.config.SendInterval))
	all := c.families()
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

// run sends what is offered until ctx is done. A round ends at the first request that
// is not taken: the rest comes with the next.
func (m *metadataSender) run(ctx context.Context) {
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

func (m *metadataSender) send(ctx context.Context, batch []prompb.MetricMetadata) bool {
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
