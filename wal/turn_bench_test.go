package wal

import (
	"fmt"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
)

// BenchmarkSegmentTurn commits samples of series to a new segment each time, which announces all of them, and reads them.
func BenchmarkSegmentTurn(b *testing.B) {
	const n = 20_000
	s := newSteady(b, n)
	for i := range s.series {
		s.series[i] = labels.FromStrings("__name__", fmt.Sprintf("container_memory_usage_%d_bytes", i%200), "instance", "host-0123.example.com:9100",
			"job", "kubelet", "namespace", fmt.Sprint("team-", i%7), "pod", fmt.Sprintf("deployment-%d-6f5d", i/200), "container", "app",
			"image", "registry.example.com/app:1.2", "node", "node-7", "site", "fra1", "id", fmt.Sprint("/kubepods/", i/100))
	}
	s.commit(b)
	r, err := s.log.Reader("target", ReaderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	m := newAllocations()
	for b.Loop() {
		s.log.writer.rollNow()
		s.commit(b)
		if _, err := r.Next(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	m.perSample(b, b.N*n)
}
