package remotewrite

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/gate"
	"hwsagent/wal"
)

// senderFunc is a Sender made of a function.
type senderFunc func(context.Context, client.Request) client.Answer

func (f senderFunc) Send(ctx context.Context, r client.Request) client.Answer { return f(ctx, r) }

// metaCache is a cache that has met series of n families, one of them without
// metadata, one dropped by a rule, one histogram of three series.
func metaCache(t testing.TB, n int) *seriesCache {
	c := newSeriesCache(labels.EmptyLabels(), rules(t, `[{source_labels: [__name__], regex: dropped, action: drop}]`))
	add := func(slot int, name, family string, m metadata.Metadata) {
		c.get(&wal.Series{Slot: slot, Labels: labels.FromStrings("__name__", name, "n", fmt.Sprint(slot)), About: &wal.About{Meta: m, Family: family}})
	}
	for i := range n {
		add(i, fmt.Sprintf("m%04d", i), "", metadata.Metadata{Type: model.MetricTypeGauge, Help: fmt.Sprint("help ", i), Unit: "bytes"})
	}
	add(n, "m0000", "", metadata.Metadata{Type: model.MetricTypeGauge, Help: "help 0", Unit: "bytes"})
	add(n+1, "none", "", metadata.Metadata{})
	add(n+2, "dropped", "", metadata.Metadata{Type: model.MetricTypeGauge})
	h := metadata.Metadata{Type: model.MetricTypeHistogram, Help: "a\xffb"}
	add(n+3, "hist.x_bucket", "hist.x", h)
	add(n+4, "hist.x_sum", "hist.x", h)
	add(n+9, "hist.x_count", "hist.x", h)
	return c
}

func TestMetadataFamilies(t *testing.T) {
	got := metaCache(t, 2).families()
	want := []prompb.MetricMetadata{
		{Type: prompb.MetricMetadata_HISTOGRAM, MetricFamilyName: "hist_x", Help: "a\uFFFDb"},
		{Type: prompb.MetricMetadata_GAUGE, MetricFamilyName: "m0000", Help: "help 0", Unit: "bytes"},
		{Type: prompb.MetricMetadata_GAUGE, MetricFamilyName: "m0001", Help: "help 1", Unit: "bytes"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestMetadataThatChanges: what is sent is the newest that was said of a family, while the log still has the former.
func TestMetadataThatChanges(t *testing.T) {
	log, err := wal.Open(wal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r, err := log.Reader("a", wal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := newSeriesCache(labels.EmptyLabels(), nil)
	for i, help := range []string{"former", "newer", "former", "newest"} {
		o := storage.AppendV2Options{Metadata: metadata.Metadata{Type: model.MetricTypeGauge, Help: help}}
		app := log.AppenderV2(t.Context())
		if _, err := app.Append(0, labels.FromStrings("__name__", "m"), 0, int64(1+i), 1, nil, nil, o); err != nil {
			t.Fatal(err)
		}
		if err := app.Commit(); err != nil {
			t.Fatal(err)
		}
		e, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range e.Samples {
			c.get(s.Series)
		}
		if got := c.families(); len(got) != 1 || got[0].Help != help {
			t.Errorf("%v, want the help %q", got, help)
		}
	}
}

func TestMetadataTypes(t *testing.T) {
	for typ, want := range map[model.MetricType]prompb.MetricMetadata_MetricType{
		model.MetricTypeCounter: prompb.MetricMetadata_COUNTER, model.MetricTypeGauge: prompb.MetricMetadata_GAUGE,
		model.MetricTypeHistogram: prompb.MetricMetadata_HISTOGRAM, model.MetricTypeGaugeHistogram: prompb.MetricMetadata_GAUGEHISTOGRAM,
		model.MetricTypeSummary: prompb.MetricMetadata_SUMMARY, model.MetricTypeInfo: prompb.MetricMetadata_INFO,
		model.MetricTypeStateset: prompb.MetricMetadata_STATESET, model.MetricTypeUnknown: prompb.MetricMetadata_UNKNOWN,
	} {
		c := newSeriesCache(labels.EmptyLabels(), nil)
		c.get(&wal.Series{Labels: labels.FromStrings("__name__", "m"), About: &wal.About{Meta: metadata.Metadata{Type: typ, Help: "h"}}})
		if got := c.families(); len(got) != 1 || got[0].Type != want {
			t.Errorf("%s: %v", typ, got)
		}
	}
}

func TestMetadataBounded(t *testing.T) {
	c := newSeriesCache(labels.EmptyLabels(), nil)
	for i := range maxFamilies + 100 {
		c.get(&wal.Series{Slot: i, Labels: labels.FromStrings("__name__", fmt.Sprint("m", i)), About: &wal.About{Meta: metadata.Metadata{Help: "h"}}})
	}
	if n := len(c.families()); n != maxFamilies {
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
		{config.MetadataConfig{Send: true, SendInterval: d(time.Minute), MaxSamplesPerSend: 2000}, 3, 303},
		{config.MetadataConfig{Send: true, SendInterval: d(50 * time.Second), MaxSamplesPerSend: 2000}, 4, 404},
		{config.MetadataConfig{Send: true, SendInterval: d(time.Minute), MaxSamplesPerSend: 40}, 9, 303},
		{config.MetadataConfig{Send: false, SendInterval: d(time.Minute), MaxSamplesPerSend: 40}, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			requests, families := 0, 0
			sender := senderFunc(func(_ context.Context, r client.Request) client.Answer {
				requests++
				got := decode(t, r.Body)
				families += len(got.Metadata)
				if len(got.Timeseries) > 0 {
					t.Error("a metadata request has series")
				}
				return client.Answer{Status: 200}
			})
			m := newMetadata(tc.config, sender.Send, openGate(), nil)
			stop := start(m)
			defer stop()
			empty, c := newSeriesCache(labels.EmptyLabels(), nil), metaCache(t, 100)
			m.offer(time.Now(), empty) // nothing known yet: the next offer is soon
			time.Sleep(5 * time.Second)
			for range 150 {
				m.offer(time.Now(), c)
				time.Sleep(time.Second)
			}
			m.offer(time.Now(), c)
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
		m := newMetadata(config.MetadataConfig{Send: true, SendInterval: d(time.Minute), MaxSamplesPerSend: 10},
			func(context.Context, client.Request) client.Answer { requests++; return client.Answer{Status: 400} }, openGate(), nil)
		stop := start(m)
		defer stop()
		c := metaCache(t, 100)
		for range 3 {
			m.offer(time.Now(), c)
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if requests != 3 {
			t.Errorf("%d requests in three rounds", requests)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		m := newMetadata(config.MetadataConfig{Send: true, SendInterval: d(time.Minute), MaxSamplesPerSend: 1000},
			func(ctx context.Context, _ client.Request) client.Answer {
				requests++
				<-ctx.Done()
				return client.Answer{Err: ctx.Err()}
			}, openGate(), nil)
		stop := start(m)
		c := metaCache(t, 100)
		for range 10 {
			m.offer(time.Now(), c)
			time.Sleep(time.Minute)
		}
		waiting := len(m.pending)
		stop()
		if requests != 1 || waiting != 1 {
			t.Errorf("%d requests, %d rounds wait", requests, waiting)
		}
	})
}

func start(m *metadataSender) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { m.run(ctx) })
	return func() { cancel(); wg.Wait() }
}

func BenchmarkMetadataOffer(b *testing.B) {
	c := metaCache(b, 500)
	m := newMetadata(config.MetadataConfig{Send: true, SendInterval: d(time.Hour), MaxSamplesPerSend: 1}, nil, nil, nil)
	now := time.Now()
	m.offer(now, c)
	b.ReportAllocs()
	for b.Loop() {
		m.offer(now, c)
	}
}

// A help text is sent as it is: long, with line breaks.
func TestMetadataHelp(t *testing.T) {
	help := strings.Repeat("line\n", 5000)
	c := newSeriesCache(labels.EmptyLabels(), nil)
	c.get(&wal.Series{Labels: labels.FromStrings("__name__", "m"), About: &wal.About{Meta: metadata.Metadata{Help: help}}})
	m := newMetadata(config.DefaultConfig().Metadata, func(_ context.Context, r client.Request) client.Answer {
		if got := decode(t, r.Body).Metadata; len(got) != 1 || got[0].Help != help || got[0].MetricFamilyName != "m" {
			t.Errorf("%v", got)
		}
		return client.Answer{Status: 204}
	}, openGate(), nil)
	if !m.send(t.Context(), c.families()) {
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
