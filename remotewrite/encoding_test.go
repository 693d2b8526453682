package remotewrite

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"hwsagent/wal"
)

// testSeries makes n series as host probes have them.
func testSeries(n int) []*series {
	c := newSeriesCache(labels.FromStrings("site", "fra1"), nil)
	all := make([]*series, n)
	for i := range all {
		all[i] = c.get(wal.NewSeries(i, labels.FromStrings(
			model.MetricNameLabel, fmt.Sprintf("node_disk_written_bytes_%d_total", i%40),
			"device", fmt.Sprintf("nvme%dn1", i/40), "instance", "host-0123.example.com", "job", "host",
		), nil))
	}
	return all
}

func decode(t testing.TB, body []byte) *prompb.WriteRequest {
	t.Helper()
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatalf("decompress body: %v", err)
	}
	got := &prompb.WriteRequest{}
	if err := got.Unmarshal(raw); err != nil {
		t.Fatalf("decode request: %v", err)
	}
	return got
}

func decodeRequest2(t testing.TB, body []byte) *writev2.Request {
	t.Helper()
	raw, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatalf("decompress body: %v", err)
	}
	got := &writev2.Request{}
	if err := got.Unmarshal(raw); err != nil {
		t.Fatalf("decode request: %v", err)
	}
	return got
}

// benchPoints is a batch of n points, each of another series, with values that move as
// counters and gauges do.
func benchPoints(n int) []point {
	r := rand.New(rand.NewPCG(1, 2))
	points := make([]point, 0, n)
	for i, s := range testSeries(n) {
		v := float64(r.IntN(1 << 30))
		if i%3 == 0 {
			v += float64(r.IntN(4096))
		}
		points = append(points, point{series: s, t: 1_790_000_000_000, v: v})
	}
	return points
}

// perSample reports figures per sample.
func perSample(b *testing.B, samples, bytes int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*samples), "ns/sample")
	b.ReportMetric(float64(bytes)/float64(samples), "wire-B/sample")
}
