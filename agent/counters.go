package agent

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// counters makes counters from the figures of parts that restart at 0 when a reload replaces them. It is safe for
// concurrent use.
type counters struct {
	mu   sync.Mutex
	sums map[counterKey]*[2]uint64 // the last figure, and the sum
}

// counterKey is a counter's description and its first two labels.
type counterKey struct {
	desc *prometheus.Desc
	a, b string
}

// metric returns the counter for a figure.
func (c *counters) metric(d *prometheus.Desc, now uint64, labels ...string) prometheus.Metric {
	key := counterKey{desc: d, a: labels[0]}
	if len(labels) > 1 {
		key.b = labels[1]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sums == nil {
		c.sums = map[counterKey]*[2]uint64{}
	}
	s := c.sums[key]
	if s == nil {
		s = &[2]uint64{}
		c.sums[key] = s
	}
	if now < s[0] {
		s[0] = 0 // the part was replaced and counts from 0
	}
	s[0], s[1] = now, s[1]+now-s[0]
	return prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(s[1]), labels...)
}
