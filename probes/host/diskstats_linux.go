package host

import (
	"context"
	"regexp"
	"strings"

	"hwsagent/probes"
)

// diskstats reads /proc/diskstats (the kernel's Documentation/admin-guide/iostats.rst), and udev's properties of the
// disks.
type diskstats struct {
	file    file
	exclude *regexp.Regexp
	sys     string
	udev    string
	labels  labelCache
	columns []diskColumn

	info, filesystem, mapper     *probes.Family
	writeCache, enabled, rotates *probes.Family
}

// diskColumn is one number of a line. Kernels have 11 (until 4.18), 15 or 17 of them.
type diskColumn struct {
	*probes.Family
	scale float64
}

func newDiskstats(e *environment) reader {
	const (
		sector = 512   // bytes, whatever the device's own block size is
		ms     = 0.001 // seconds
	)
	return &diskstats{
		file:    file{path: e.proc("diskstats")},
		exclude: e.pattern(&e.DiskstatsExclude),
		sys:     e.sys("block"),
		udev:    e.UdevPath,
		labels:  labelCache{name: "device"},
		columns: []diskColumn{
			{counter("node_disk_reads_completed_total", "Reads that were completed."), 1},
			{counter("node_disk_reads_merged_total", "Reads that were merged with another."), 1},
			{counter("node_disk_read_bytes_total", "Bytes read."), sector},
			{counter("node_disk_read_time_seconds_total", "Time spent by all reads."), ms},
			{counter("node_disk_writes_completed_total", "Writes that were completed."), 1},
			{counter("node_disk_writes_merged_total", "Writes that were merged with another."), 1},
			{counter("node_disk_written_bytes_total", "Bytes written."), sector},
			{counter("node_disk_write_time_seconds_total", "Time spent by all writes."), ms},
			{gauge("node_disk_io_now", "Requests in flight."), 1},
			{counter("node_disk_io_time_seconds_total", "Time during which requests were in flight."), ms},
			{counter("node_disk_io_time_weighted_seconds_total", "Time in flight, summed over all requests."), ms},
			{counter("node_disk_discards_completed_total", "Discards that were completed."), 1},
			{counter("node_disk_discards_merged_total", "Discards that were merged with another."), 1},
			{counter("node_disk_discarded_sectors_total", "Sectors discarded."), 1},
			{counter("node_disk_discard_time_seconds_total", "Time spent by all discards."), ms},
			{counter("node_disk_flush_requests_total", "Flushes that were completed."), 1},
			{counter("node_disk_flush_requests_time_seconds_total", "Time spent by all flushes."), ms},
		},
		info:       gauge("node_disk_info", "What is known of the disk; always 1."),
		filesystem: gauge("node_disk_filesystem_info", "What is on the disk, by udev; always 1."),
		mapper:     gauge("node_disk_device_mapper_info", "What the device-mapper volume is; always 1."),
		writeCache: gauge("node_disk_ata_write_cache", "Whether the ATA disk has a write cache."),
		enabled:    gauge("node_disk_ata_write_cache_enabled", "Whether the ATA disk's write cache is on."),
		rotates:    gauge("node_disk_ata_rotation_rate_rpm", "Rotation rate of the ATA disk; 0 for an SSD."),
	}
}

func (d *diskstats) read(_ context.Context, r *probes.Round) error {
	b, err := d.file.read()
	if err != nil {
		return err
	}
	for line := range lines(b) {
		major, rest := word(line)
		minor, rest := word(rest)
		name, rest := word(rest)
		if len(name) == 0 || d.exclude.Match(name) {
			continue
		}
		labels := d.labels.of(name)
		for _, c := range d.columns {
			var digits []byte
			digits, rest = word(rest)
			v, ok := float(digits)
			if !ok {
				break
			}
			r.Add(c.Family, v*c.scale, labels...)
		}
		d.describe(r, labels, string(major), string(minor))
	}
	return nil
}

// describe adds the disk's info series and the values from udev's database.
func (d *diskstats) describe(r *probes.Round, labels []string, major, minor string) {
	device := labels[1]
	u := udevProperties(d.udev + "/b" + major + ":" + minor)
	serial := u["SCSI_IDENT_SERIAL"] // as printed on the disk
	for _, key := range []string{"ID_SERIAL_SHORT", "ID_SERIAL"} {
		if serial == "" {
			serial = u[key]
		}
	}
	rotational := "0"
	// A name with a slash (cciss/c0d0) has an exclamation mark in sysfs.
	if text(d.sys+"/"+strings.ReplaceAll(device, "/", "!")+"/queue/rotational") == "1" {
		rotational = "1"
	}
	r.Add(d.info, 1, "device", device, "major", major, "minor", minor, "model", u["ID_MODEL"], "path", u["ID_PATH"],
		"revision", u["ID_REVISION"], "rotational", rotational, "serial", serial, "wwn", u["ID_WWN"])
	if u["ID_FS_TYPE"] != "" {
		r.Add(d.filesystem, 1, "device", device, "type", u["ID_FS_TYPE"], "usage", u["ID_FS_USAGE"],
			"uuid", u["ID_FS_UUID"], "version", u["ID_FS_VERSION"])
	}
	if u["DM_NAME"] != "" {
		r.Add(d.mapper, 1, "device", device, "lv_layer", u["DM_LV_LAYER"], "lv_name", u["DM_LV_NAME"],
			"name", u["DM_NAME"], "uuid", u["DM_UUID"], "vg_name", u["DM_VG_NAME"])
	}
	if u["ID_ATA"] == "" {
		return
	}
	for _, a := range [...]struct {
		*probes.Family
		key string
	}{
		{d.writeCache, "ID_ATA_WRITE_CACHE"},
		{d.enabled, "ID_ATA_WRITE_CACHE_ENABLED"},
		{d.rotates, "ID_ATA_ROTATION_RATE_RPM"},
	} {
		if v, ok := numeral(u[a.key]); ok {
			r.Add(a.Family, v, labels...)
		}
	}
}

// udevProperties returns the E: lines of one entry of udev's database; none without udev, as in containers.
func udevProperties(path string) map[string]string {
	f := file{path: path}
	b, err := f.read()
	if err != nil {
		return nil
	}
	properties := make(map[string]string)
	for line := range lines(b) {
		if key, value, ok := strings.Cut(string(line), "="); ok && strings.HasPrefix(key, "E:") {
			properties[key[2:]] = value
		}
	}
	return properties
}
