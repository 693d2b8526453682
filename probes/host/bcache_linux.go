package host

import (
	"errors"
	"fmt"

	"github.com/prometheus/procfs/bcache"

	"hwsagent/probes"
)

// bcacheValue is one figure of a set of bcache, of a backing device of it, or of a cache device.
type bcacheValue[T any] struct {
	*probes.Family
	of func(*T) float64
}

// newBcache reads sets of bcache (/sys/fs/bcache/UUID; the kernel's Documentation/admin-guide/bcache.rst), except
// priority_stats, which takes the kernel long to count; node_exporter leaves it out, too.
func newBcache(e *environment) reader {
	sets, backing, caches := bcacheSets(), bcacheBacking(), bcacheCaches()
	readaheads := counter("node_bcache_cache_readaheads_total", "Reads ahead into the cache, of kernels that count them.")
	return newOnce(e, func() (samples, error) {
		fs, err := bcache.NewFS(e.SysPath)
		if err != nil {
			return nil, fmt.Errorf("open sysfs: %w", err)
		}
		all, err := bcacheStats(fs)
		if err != nil {
			return nil, fmt.Errorf("read statistics of bcache: %w", err)
		}
		if len(all) == 0 {
			return nil, errAbsent
		}
		var s samples
		for _, set := range all {
			for _, v := range sets {
				s.add(v.Family, v.of(&set.Bcache), "uuid", set.Name)
			}
			for i := range set.Bdevs {
				d := &set.Bdevs[i]
				for _, v := range backing {
					s.add(v.Family, v.of(d), "uuid", set.Name, "backing_device", d.Name)
				}
				if n := d.Total.CacheReadaheads; n > 0 {
					s.add(readaheads, float64(n), "uuid", set.Name, "backing_device", d.Name)
				}
			}
			for i := range set.Caches {
				d := &set.Caches[i]
				for _, v := range caches {
					s.add(v.Family, v.of(d), "uuid", set.Name, "cache_device", d.Name)
				}
			}
		}
		return s, nil
	})
}

// bcacheStats reads the figures. The parser of procfs panics on an empty file, which a disappearing device may leave.
func bcacheStats(fs bcache.FS) (all []*bcache.Stats, err error) {
	defer func() {
		if recover() != nil {
			all, err = nil, errors.New("a file is not as the kernel writes it")
		}
	}()
	return fs.StatsWithoutPriority()
}

func bcacheSets() []bcacheValue[bcache.BcacheStats] {
	const microsecond = 1e-6 // node_exporter treats it as a nanosecond
	type of = bcache.BcacheStats
	return []bcacheValue[of]{
		{gauge("node_bcache_average_key_size_sectors", "Data for a key of the tree, on average."), func(b *of) float64 { return float64(b.AverageKeySize) }},
		{gauge("node_bcache_btree_cache_size_bytes", "Memory for the tree."), func(b *of) float64 { return float64(b.BtreeCacheSize) }},
		{gauge("node_bcache_cache_available_percent", "Part of the cache without dirty data."), func(b *of) float64 { return float64(b.CacheAvailablePercent) }},
		{gauge("node_bcache_congested", "Congestion of the cache."), func(b *of) float64 { return float64(b.Congested) }},
		{gauge("node_bcache_root_usage_percent", "Part of the tree's root that is in use."), func(b *of) float64 { return float64(b.RootUsagePercent) }},
		{gauge("node_bcache_tree_depth", "Depth of the tree."), func(b *of) float64 { return float64(b.TreeDepth) }},
		{gauge("node_bcache_active_journal_entries", "Entries of the journal that are newer than the index."), func(b *of) float64 { return float64(b.Internal.ActiveJournalEntries) }},
		{gauge("node_bcache_btree_nodes", "Nodes of the tree."), func(b *of) float64 { return float64(b.Internal.BtreeNodes) }},
		{gauge("node_bcache_btree_read_average_duration_seconds", "How long a read of the tree takes, on average."), func(b *of) float64 { return float64(b.Internal.BtreeReadAverageDurationMicroSeconds) * microsecond }},
		{counter("node_bcache_cache_read_races_total", "Reads of the cache whose bucket was given away meanwhile."), func(b *of) float64 { return float64(b.Internal.CacheReadRaces) }},
	}
}

func bcacheBacking() []bcacheValue[bcache.BdevStats] {
	type of = bcache.BdevStats
	return []bcacheValue[of]{
		{gauge("node_bcache_dirty_data_bytes", "Data of this device that is only in the cache."), func(b *of) float64 { return float64(b.DirtyData) }},
		{gauge("node_bcache_dirty_target_bytes", "How much dirty data the kernel aims at."), func(b *of) float64 { return float64(b.WritebackRateDebug.Target) }},
		{gauge("node_bcache_writeback_rate", "Bytes a second that are written back."), func(b *of) float64 { return float64(b.WritebackRateDebug.Rate) }},
		{gauge("node_bcache_writeback_rate_proportional_term", "Proportional part of the controller of that rate."), func(b *of) float64 { return float64(b.WritebackRateDebug.Proportional) }},
		{gauge("node_bcache_writeback_rate_integral_term", "Integral part of the controller of that rate."), func(b *of) float64 { return float64(b.WritebackRateDebug.Integral) }},
		{gauge("node_bcache_writeback_change", "Last change of that rate."), func(b *of) float64 { return float64(b.WritebackRateDebug.Change) }},
		{counter("node_bcache_bypassed_bytes_total", "Bytes that went past the cache."), func(b *of) float64 { return float64(b.Total.Bypassed) }},
		{counter("node_bcache_cache_hits_total", "Requests that the cache had."), func(b *of) float64 { return float64(b.Total.CacheHits) }},
		{counter("node_bcache_cache_misses_total", "Requests that the cache did not have."), func(b *of) float64 { return float64(b.Total.CacheMisses) }},
		{counter("node_bcache_cache_bypass_hits_total", "Requests that were to go past the cache, which had them."), func(b *of) float64 { return float64(b.Total.CacheBypassHits) }},
		{counter("node_bcache_cache_bypass_misses_total", "Requests that were to go past the cache, which did not have them."), func(b *of) float64 { return float64(b.Total.CacheBypassMisses) }},
		{counter("node_bcache_cache_miss_collisions_total", "Data that was not kept after a miss, since a write brought newer data."), func(b *of) float64 { return float64(b.Total.CacheMissCollisions) }},
	}
}

func bcacheCaches() []bcacheValue[bcache.CacheStats] {
	type of = bcache.CacheStats
	return []bcacheValue[of]{
		{gauge("node_bcache_io_errors", "Errors of the cache device; old ones count less and less."), func(b *of) float64 { return float64(b.IOErrors) }},
		{counter("node_bcache_metadata_written_bytes_total", "Bytes written that are no data."), func(b *of) float64 { return float64(b.MetadataWritten) }},
		{counter("node_bcache_written_bytes_total", "Bytes of data written to the cache."), func(b *of) float64 { return float64(b.Written) }},
	}
}
