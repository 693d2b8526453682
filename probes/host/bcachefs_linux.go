package host

import (
	"errors"
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs/bcachefs"

	"hwsagent/probes"
)

// newBcachefs reads mounted bcachefs file systems (/sys/fs/bcachefs/UUID). One that cannot be read is skipped by
// itself.
func newBcachefs(e *environment) reader {
	b := newBcachefsFamilies()
	dir := e.sys("fs/bcachefs")
	return newOnce(e, func() (samples, error) {
		uuids, err := list(dir)
		if err != nil {
			return nil, err
		}
		var s samples
		var errs []error
		for _, uuid := range uuids {
			stats, err := bcachefs.GetStats(dir + "/" + uuid)
			if err != nil {
				errs = append(errs, fmt.Errorf("read statistics of %s/%s: %w", dir, uuid, err))
				continue
			}
			b.add(&s, uuid, stats)
		}
		return s, errors.Join(errs...)
	})
}

// bcachefsFamilies are the collector's families for each file system and device.
type bcachefsFamilies struct {
	info, cache, compressed, uncompressed, errors, writes, writeSize *probes.Family
	device, bucketSize, buckets, durability, done, deviceErrors      *probes.Family
}

func newBcachefsFamilies() bcachefsFamilies {
	return bcachefsFamilies{
		info:         gauge("node_bcachefs_info", "Always 1; one for each mounted file system."),
		cache:        gauge("node_bcachefs_btree_cache_size_bytes", "Memory for the trees."),
		compressed:   gauge("node_bcachefs_compression_compressed_bytes", "Data on disk, by the algorithm that compressed it."),
		uncompressed: gauge("node_bcachefs_compression_uncompressed_bytes", "The same data without compression."),
		errors:       counter("node_bcachefs_errors_total", "Errors of the file system, by their name."),
		writes:       counter("node_bcachefs_btree_writes_total", "Writes of nodes of trees, by what made them necessary."),
		writeSize:    gauge("node_bcachefs_btree_write_average_size_bytes", "Size of such writes, on average."),
		device:       gauge("node_bcachefs_device_info", "Always 1; the labels describe a device of the file system."),
		bucketSize:   gauge("node_bcachefs_device_bucket_size_bytes", "Size of a bucket of the device."),
		buckets:      gauge("node_bcachefs_device_buckets", "Buckets of the device."),
		durability:   gauge("node_bcachefs_device_durability", "How many copies a copy on this device counts as."),
		done:         counter("node_bcachefs_device_io_done_bytes_total", "Bytes read and written, by what they were."),
		deviceErrors: counter("node_bcachefs_device_io_errors_total", "Errors of the device since the file system was made, by kind."),
	}
}

func (b *bcachefsFamilies) add(s *samples, uuid string, stats *bcachefs.Stats) {
	s.add(b.info, 1, "uuid", uuid)
	s.add(b.cache, float64(stats.BtreeCacheSizeBytes), "uuid", uuid)
	for algorithm, c := range stats.Compression {
		s.add(b.compressed, float64(c.CompressedBytes), "uuid", uuid, "algorithm", algorithm)
		s.add(b.uncompressed, float64(c.UncompressedBytes), "uuid", uuid, "algorithm", algorithm)
	}
	for kind, e := range stats.Errors {
		s.add(b.errors, float64(e.Count), "uuid", uuid, "error_type", kind)
	}
	for name, c := range stats.Counters {
		f := family("node_bcachefs_"+name+"_total", "The kernel's counter "+name+" since the file system was made.", model.MetricTypeCounter)
		s.add(f, float64(c.SinceFilesystemCreation), "uuid", uuid)
	}
	for kind, w := range stats.BtreeWrites {
		s.add(b.writes, float64(w.Count), "uuid", uuid, "type", kind)
		s.add(b.writeSize, float64(w.SizeBytes), "uuid", uuid, "type", kind)
	}
	for name, d := range stats.Devices {
		s.add(b.device, 1, "uuid", uuid, "device", name, "label", d.Label, "state", d.State)
		s.add(b.bucketSize, float64(d.BucketSizeBytes), "uuid", uuid, "device", name)
		s.add(b.buckets, float64(d.Buckets), "uuid", uuid, "device", name)
		s.add(b.durability, float64(d.Durability), "uuid", uuid, "device", name)
		for operation, kinds := range d.IODone {
			for kind, bytes := range kinds {
				s.add(b.done, float64(bytes), "uuid", uuid, "device", name, "operation", operation, "data_type", kind)
			}
		}
		for kind, n := range d.IOErrors {
			s.add(b.deviceErrors, float64(n), "uuid", uuid, "device", name, "type", kind)
		}
	}
}
