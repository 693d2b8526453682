package remotewrite

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
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/remotewrite/metrics"
	"hwsagent/wal"
)

// metadataOf returns what lists n families, from series one of which has no metadata.
func metadataOf(n int) func() []prompb.MetricMetadata {
	series := []*wal.Series{wal.NewSeries(0, labels.FromStrings("__name__", "none"), &wal.About{})}
	for i := range n {
		about := &wal.About{Meta: metadata.Metadata{Type: model.MetricTypeGauge, Help: fmt.Sprint("help ", i)}}
		series = append(series, wal.NewSeries(i, labels.FromStrings("__name__", fmt.Sprintf("m%04d", i)), about))
	}
	return func() []prompb.MetricMetadata { return familiesOf(slices.Values(series)) }
}

func decodeMetadata(t *testing.T, body []byte) (w prompb.WriteRequest) {
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

func TestMetadataBounded(t *testing.T) {
	if n := len(metadataOf(mostFamilies + 100)()); n != mostFamilies {
		t.Errorf("%d families", n)
	}
}

// Each key of metadata_config changes what is sent.
func TestMetadataConfig(t *testing.T) {
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
				got := decodeMetadata(t, r.Body)
				families += len(got.Metadata)
				if len(got.Timeseries) > 0 {
					t.Error("a metadata request has series")
				}
				return client.Answer{Status: 200}
			}
			m := newMetadataSender(tc.config, sender, gateOfMetadata(), metrics.Unregistered("a", "u"))
			stop := startMetadata(m)
			defer stop()
			empty, c := metadataOf(0), metadataOf(100)
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
func TestMetadataRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		m := newMetadataSender(config.MetadataConfig{Send: true, SendInterval: model.Duration(time.Minute), MaxSamplesPerSend: 10},
			func(context.Context, client.Request) client.Answer { requests++; return client.Answer{Status: 400} }, gateOfMetadata(), metrics.Unregistered("a", "u"))
		stop := startMetadata(m)
		defer stop()
		c := metadataOf(100)
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
		m := newMetadataSender(config.MetadataConfig{Send: true, SendInterval: model.Duration(time.Minute), MaxSamplesPerSend: 1000},
			func(ctx context.Context, _ client.Request) client.Answer {
				requests++
				<-ctx.Done()
				return client.Answer{Err: ctx.Err()}
			}, gateOfMetadata(), metrics.Unregistered("a", "u"))
		stop := startMetadata(m)
		c := metadataOf(100)
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

func startMetadata(m *metadataSender) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { m.Run(ctx) })
	return func() { cancel(); wg.Wait() }
}

func BenchmarkMetadataOffer(b *testing.B) {
	c := metadataOf(500)
	m := newMetadataSender(config.MetadataConfig{Send: true, SendInterval: model.Duration(time.Hour), MaxSamplesPerSend: 1}, nil, nil, metrics.Unregistered("a", "u"))
	now := time.Now()
	m.Offer(now, c)
	b.ReportAllocs()
	for b.Loop() {
		m.Offer(now, c)
	}
}

// A help text is sent as it is: long, with line breaks.
func TestMetadataHelp(t *testing.T) {
	help := strings.Repeat("line\n", 5000)
	s := wal.NewSeries(0, labels.FromStrings("__name__", "m"), &wal.About{Meta: metadata.Metadata{Help: help}})
	m := newMetadataSender(config.DefaultConfig().Metadata, func(_ context.Context, r client.Request) client.Answer {
		if got := decodeMetadata(t, r.Body).Metadata; len(got) != 1 || got[0].Help != help || got[0].MetricFamilyName != "m" {
			t.Errorf("%v", got)
		}
		return client.Answer{Status: 204}
	}, gateOfMetadata(), metrics.Unregistered("a", "u"))
	if !m.send(t.Context(), familiesOf(slices.Values([]*wal.Series{s}))) {
		t.Error("not sent")
	}
}

// gateOfMetadata is the gate of a target that takes data.
func gateOfMetadata() *gate.Gate {
	g := gate.New(time.Millisecond, time.Second, 0, func() float64 { return 0.5 })
	if p, ok := g.Try(); ok {
		g.Delivered(p)
	}
	return g
}

// TestOneRefusedFamilyKeepsNoOtherBack: a receiver that refuses the metadata of one family gets those of all others outside its request.
func TestOneRefusedFamilyKeepsNoOtherBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		has := map[string]bool{}
		m := newMetadataSender(config.MetadataConfig{Send: true, SendInterval: model.Duration(time.Minute), MaxSamplesPerSend: 10},
			func(_ context.Context, r client.Request) client.Answer {
				var names []string
				for _, x := range decodeMetadata(t, r.Body).Metadata {
					names = append(names, x.MetricFamilyName)
				}
				if slices.Contains(names, "m0003") {
					return client.Answer{Status: 400, Text: "help too long: m0003"}
				}
				for _, n := range names {
					has[n] = true
				}
				return client.Answer{Status: 204}
			}, gateOfMetadata(), metrics.Unregistered("a", "u"))
		stop := startMetadata(m)
		defer stop()
		c := metadataOf(100)
		for range 60 {
			m.Offer(time.Now(), c)
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if len(has) < 90 {
			t.Errorf("after an hour the receiver has the metadata of %d families of 100; it refuses one", len(has))
		}
	})
}

// TestMetadataPassesTheGate: metadata passes the target's gate: it is not sent during a pause that the receiver asked
// for, and a pause in an answer to metadata applies to samples, too.
func TestMetadataPassesTheGate(t *testing.T) {
	for _, to := range []string{"samples", "metadata"} {
		t.Run("429 to "+to, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var limited time.Time
				early, since := 0, 0
				recv := &fakeReceiver{latency: 5 * time.Millisecond}
				recv.script = func(q fakeRequest) (client.Answer, bool) {
					switch {
					case !limited.IsZero() && time.Since(limited) < 5*time.Minute:
						early++
					case limited.IsZero() && q.n > 20 && (len(q.samples) > 0) == (to == "samples"):
						limited = time.Now()
						return client.Answer{Status: 429, RetryAfter: 5 * time.Minute}, true
					case !limited.IsZero():
						since++
					}
					return client.Answer{}, false
				}
				r := newRig(t, recv)
				reg := prometheus.NewRegistry()
				m, err := metrics.New(reg, "test", "http://h/")
				if err != nil {
					t.Fatal(err)
				}
				r.metrics = m
				r.log.meta.Type, r.log.meta.Help = "gauge", "help"
				r.start()
				for range 120 {
					r.round(10)
					time.Sleep(5 * time.Second)
				}
				r.drained(time.Minute)
				r.end()
				if limited.IsZero() || early > 0 || since == 0 {
					t.Errorf("limited at %s, %d requests too early, %d after it", limited, early, since)
				}
				if n := shown(t, reg, "prometheus_remote_storage_metadata_total"); n == 0 {
					t.Error("no metadata was sent")
				}
				if got, want := r.q.Status().Requests, uint64(recv.count()); got != want {
					t.Errorf("the status counts %d requests of %d", got, want)
				}
				r.verify()
			})
		})
	}
}
