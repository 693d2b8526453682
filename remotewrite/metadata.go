package remotewrite

import (
	"context"
	"iter"
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
	"hwsagent/wal"
)

// metadataSender sends the metadata of one target's metric families as remote write 1.0 does: in requests of their own, every
// send_interval. It is not accounted for, since the next round sends everything again. Remote write 2.0 sends metadata with the
// samples. Due and Offer are for one goroutine, Run for another.
type metadataSender struct {
	config  config.MetadataConfig
	post    func(context.Context, client.Request) client.Answer // counts and records the answer
	gate    *gate.Gate
	metrics *metrics.Target
	pending chan []prompb.MetricMetadata // of length 1: the newest round
	next    time.Time                    // used by the goroutine that calls Offer
	failed  string                       // the last family of the request at which the last round ended; "": none. Used by Run
}

// newMetadataSender makes a sender. post sends a request; each waits for the gate to be open.
func newMetadataSender(c config.MetadataConfig, post func(context.Context, client.Request) client.Answer, g *gate.Gate, m *metrics.Target) *metadataSender {
	return &metadataSender{config: c, post: post, gate: g, metrics: m, pending: make(chan []prompb.MetricMetadata, 1)}
}

// Due reports whether it is time for another round. It is cheap.
func (m *metadataSender) Due(now time.Time) bool { return m.config.Send && !now.Before(m.next) }

// Offer passes the present metadata to Run if a round is due. Call it only while the target accepts data.
func (m *metadataSender) Offer(now time.Time, present func() []prompb.MetricMetadata) {
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
func (m *metadataSender) Run(ctx context.Context) {
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

// mostFamilies bounds the metric families whose metadata is sent to a target, so that a
// runaway probe cannot fill memory and network with help texts.
const mostFamilies = 20000

// familiesOf lists the metadata of the metric families of series, sorted by
// name, at most 20,000. Names are those that the appender gave, as in
// Prometheus: rules that rename metrics do not rename families. If the series of a
// family differ, the first one with metadata counts.
func familiesOf(series iter.Seq[*wal.Series]) []prompb.MetricMetadata {
	all := map[string]prompb.MetricMetadata{}
	var about *wal.About // of the series before, as is name
	name := ""
	for s := range series {
		if len(all) == mostFamilies {
			break
		}
		family := s.About.Family
		if family == "" {
			family = s.Name()
		}
		if s.About == about && family == name {
			continue // most series follow another one of their family, and a comparison is quicker than a map
		}
		about, name = s.About, family
		m := &about.Meta
		if m.Type == "" && m.Help == "" && m.Unit == "" {
			continue
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
