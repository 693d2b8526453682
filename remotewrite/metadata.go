package remotewrite

import (
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/remotewrite/families"
	"hwsagent/wal"
)

// families returns the metadata of all families that have a series which is sent.
func (c *seriesCache) families() []prompb.MetricMetadata {
	return families.Of(func(yield func(*wal.Series) bool) {
		for i := range c.slots {
			if s := c.slots[i].to; s != nil && !s.dropped() && !yield(s.from) {
				return
			}
		}
	})
}
