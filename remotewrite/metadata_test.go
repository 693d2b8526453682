package remotewrite

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/remotewrite/client"
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
		c.get(wal.NewSeries(slot, labels.FromStrings("__name__", name, "n", fmt.Sprint(slot)), &wal.About{Meta: m, Family: family}))
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

// TestMetadataThatChanges: the newest metadata of a family is sent, even while the log still has the older one.
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
		s := wal.NewSeries(0, labels.FromStrings("__name__", "m"), &wal.About{Meta: metadata.Metadata{Type: typ, Help: "h"}})
		if got := familiesOf(slices.Values([]*wal.Series{s})); len(got) != 1 || got[0].Type != want {
			t.Errorf("%s: %v", typ, got)
		}
	}
}

// BenchmarkOf lists the families of 100,000 series of 100 targets: family by family of each, as a scrape brings them.
func BenchmarkFamiliesOf(b *testing.B) {
	const targets, all, each = 100, 40, 25
	var abouts []*wal.About
	for i := range all {
		abouts = append(abouts, &wal.About{Meta: metadata.Metadata{Type: model.MetricTypeGauge, Help: fmt.Sprint("help ", i)}})
	}
	var series []*wal.Series
	for target := range targets {
		for i, about := range abouts {
			for n := range each {
				ls := labels.FromStrings("__name__", fmt.Sprintf("hw_metric_number_%d", i), "instance", fmt.Sprint(target), "n", fmt.Sprint(n))
				series = append(series, wal.NewSeries(len(series), ls, about))
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if n := len(familiesOf(slices.Values(series))); n != all {
			b.Fatalf("%d families", n)
		}
	}
}
