package families

import (
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/wal"
)

// BenchmarkOf lists the families of 100,000 series of 100 targets: family by family of each, as a scrape brings them.
func BenchmarkOf(b *testing.B) {
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
				series = append(series, &wal.Series{Slot: len(series), Labels: ls, About: about})
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if n := len(Of(slices.Values(series))); n != all {
			b.Fatalf("%d families", n)
		}
	}
}
