package split

// Partitions divide the samples in doubt, so that the stored samples of each partition are a prefix. Each shard of the
// previous process has two partitions, because receivers treat floats and histograms differently: Prometheus 2 with an
// out-of-order window accepts late floats, but no late histograms, so an accepted late float says nothing about the
// histograms beside it. To keep its order, a series is in one partition: that of histograms, if any of its samples is
// one.
type Partitions struct {
	shards     uint64
	histograms map[uint64]bool // by hash
}

// NewPartitions creates the partitions of samples that as many shards sent; 0 means one.
func NewPartitions(shards int) Partitions {
	return Partitions{shards: uint64(max(shards, 1)), histograms: make(map[uint64]bool)}
}

// Histogram records that the series with this hash has a histogram. Call it before Of.
func (p Partitions) Histogram(hash uint64) { p.histograms[hash] = true }

// Of returns the partition of a series.
func (p Partitions) Of(hash uint64) uint16 {
	partition := 2 * (hash % p.shards)
	if p.histograms[hash] {
		partition++
	}
	return uint16(partition)
}
