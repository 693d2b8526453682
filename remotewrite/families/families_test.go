package families

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/prompb"
	"go.uber.org/goleak"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/metrics"
	"hwsagent/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gauges returns what lists n families, from series one of which has no metadata.
func gauges(n int) func() []prompb.MetricMetadata {
	series := []*wal.Series{{Labels: labels.FromStrings("__name__", "none"), About: &wal.About{}}}
	for i := range n {
		about := &wal.About{Meta: metadata.Metadata{Type: model.MetricTypeGauge, Help: fmt.Sprint("help ", i)}}
		series = append(series, &wal.Series{Slot: i, Labels: labels.FromStrings("__name__", fmt.Sprintf("m%04d", i)), About: about})
	}
	return func() []prompb.MetricMetadata { return Of(slices.Values(series)) }
}

func decode(t *testing.T, body []byte) (w prompb.WriteRequest) {
	t.Helper()
	raw, err := snappy.Decode(nil, body)
	if err == nil {
		err = w.Unmarshal(raw)
	}
	if err != nil {
		t.Error(err)
	}
	return w
}

func TestTypes(t *testing.T) {
	for typ, want := range map[model.MetricType]prompb.MetricMetadata_MetricType{
		model.MetricTypeCounter: prompb.MetricMetadata_COUNTER, model.MetricTypeGauge: prompb.MetricMetadata_GAUGE,
		model.MetricTypeHistogram: prompb.MetricMetadata_HISTOGRAM, model.MetricTypeGaugeHistogram: prompb.MetricMetadata_GAUGEHISTOGRAM,
		model.MetricTypeSummary: prompb.MetricMetadata_SUMMARY, model.MetricTypeInfo: prompb.MetricMetadata_INFO,
		model.MetricTypeStateset: prompb.MetricMetadata_STATESET, model.MetricTypeUnknown: prompb.MetricMetadata_UNKNOWN,
	} {
		s := &wal.Series{Labels: labels.FromStrings("__name__", "m"), About: &wal.About{Meta: metadata.Metadata{Type: typ, Help: "h"}}}
		if got := Of(slices.Values([]*wal.Series{s})); len(got) != 1 || got[0].Type != want {
			t.Errorf("%s: %v", typ, got)
		}
	}
}

func TestBounded(t *testing.T) {
	if n := len(gauges(most + 100)()); n != most {
		t.Errorf("%d families", n)
	}
}

// Each key of metadata_config changes what is sent.
func TestConfig(t *testing.T) {
	for _, tc := range []struct {
		config   config.MetadataConfig
		requests int // in 150 s
		families int
	}{
		{config.MetadataConfig{Send: true, SendInterval: model.Duration(time.Minute), MaxSamplesPerSend: 2000}, 3, 300},
		{config.MetadataConfig{Send: true, SendInterval: model.Duration(50 * time.Second), MaxSamplesPerSend: 2000}, 4, 400},
		{config.MetadataConfig{Send: true, SendInterval: model.Duration(time.Minute), MaxSamplesPerSend: 40}, 9, 300},
		{config.MetadataConfig{Send: false, SendInterval: model.Duration(time.Minute), MaxSamplesPerSend: 40}, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			requests, families := 0, 0
			sender := func(_ context.Context, r client.Request) client.Answer {
				requests++
				got := decode(t, r.Body)
				families += len(got.Metadata)
				if len(got.Timeseries) > 0 {
					t.Error("a metadata request has series")
				}
				return client.Answer{Status: 200}
			}
			m := New(tc.config, sender, openGate(), metrics.Unregistered("a", "u"))
			stop := start(m)
			defer stop()
			empty, c := gauges(0), gauges(100)
			m.Offer(time.Now(), empty) // nothing known yet: the next offer is soon
			time.Sleep(5 * time.Second)
			for range 150 {
				m.Offer(time.Now(), c)
				time.Sleep(time.Second)
			}
			m.Offer(time.Now(), c)
			synctest.Wait()
			if requests != tc.requests || families != tc.families {
				t.Errorf("%+v: %d requests, %d families; want %d, %d", tc.config, requests, families, tc.requests, tc.families)
			}
		})
	}
}

// A round ends at the first refusal; the next round begins anew. A sender that hangs
// piles nothing up.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		m := New(config.MetadataConfig{Send: true, SendInterval: model.Duration(time.Minute), MaxSamplesPerSend: 10},
			func(context.Context, client.Request) client.Answer { requests++; return client.Answer{Status: 400} }, openGate(), metrics.Unregistered("a", "u"))
		stop := start(m)
		defer stop()
		c := gauges(100)
		for range 3 {
			m.Offer(time.Now(), c)
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if requests != 3 {
			t.Errorf("%d requests in three rounds", requests)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		m := New(config.MetadataConfig{Send: true, SendInterval: model.Duration(time.Minute), MaxSamplesPerSend: 1000},
			func(ctx context.Context, _ client.Request) client.Answer {
				requests++
				<-ctx.Done()
				return client.Answer{Err: ctx.Err()}
			}, openGate(), metrics.Unregistered("a", "u"))
		stop := start(m)
		c := gauges(100)
		for range 10 {
			m.Offer(time.Now(), c)
			time.Sleep(time.Minute)
		}
		waiting := len(m.pending)
		stop()
		if requests != 1 || waiting != 1 {
			t.Errorf("%d requests, %d rounds wait", requests, waiting)
		}
	})
}

func start(m *Sender) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { m.Run(ctx) })
	return func() { cancel(); wg.Wait() }
}

func BenchmarkOffer(b *testing.B) {
	c := gauges(500)
	m := New(config.MetadataConfig{Send: true, SendInterval: model.Duration(time.Hour), MaxSamplesPerSend: 1}, nil, nil, metrics.Unregistered("a", "u"))
	now := time.Now()
	m.Offer(now, c)
	b.ReportAllocs()
	for b.Loop() {
		m.Offer(now, c)
	}
}

// A help text is sent as it is: long, with line breaks.
func TestHelp(t *testing.T) {
	help := strings.Repeat("line\n", 5000)
	s := &wal.Series{Labels: labels.FromStrings("__name__", "m"), About: &wal.About{Meta: metadata.Metadata{Help: help}}}
	m := New(config.DefaultConfig().Metadata, func(_ context.Context, r client.Request) client.Answer {
		if got := decode(t, r.Body).Metadata; len(got) != 1 || got[0].Help != help || got[0].MetricFamilyName != "m" {
			t.Errorf("%v", got)
		}
		return client.Answer{Status: 204}
	}, openGate(), metrics.Unregistered("a", "u"))
	if !m.send(t.Context(), Of(slices.Values([]*wal.Series{s}))) {
		t.Error("not sent")
	}
}

// openGate is the gate of a target that takes data.
func openGate() *gate.Gate {
	g := gate.New(time.Millisecond, time.Second, 0, func() float64 { return 0.5 })
	if p, ok := g.Try(); ok {
		g.Delivered(p)
	}
	return g
}
