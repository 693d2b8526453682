package smart

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// families are those of smartctl_exporter. The help texts are this project's.
type families map[string]*probes.Family

func newFamilies() families {
	f := make(families)
	for _, row := range [...]struct {
		typ  model.MetricType
		name string
		help string
	}{
		{model.MetricTypeGauge, "device", "Identity of the disk; always 1."},
		{model.MetricTypeGauge, "devices", "Number of disks that the probe reads."},
		{model.MetricTypeGauge, "device_smartctl_exit_status", "Exit status of smartctl as a bit mask; 0 means no problem."},
		{model.MetricTypeGauge, "device_capacity_blocks", "Size of the disk in blocks."},
		{model.MetricTypeGauge, "device_capacity_bytes", "Size of the disk in bytes."},
		{model.MetricTypeGauge, "device_nvme_capacity_bytes", "Size of the NVMe disk with all its namespaces in bytes."},
		{model.MetricTypeGauge, "device_block_size", "Size of a block in bytes."},
		{model.MetricTypeGauge, "device_interface_speed", "Speed of the disk's interface in bits per second."},
		{model.MetricTypeGauge, "device_attribute", "A SMART attribute: its value, worst value, threshold and raw value."},
		{model.MetricTypeCounter, "device_power_on_seconds", "Time for which the disk has been switched on."},
		{model.MetricTypeGauge, "device_rotation_rate", "Rotations per minute."},
		{model.MetricTypeGauge, "device_temperature", "Temperatures of the disk, and their limits, in degrees Celsius."},
		{model.MetricTypeCounter, "device_power_cycle_count", "Times that the disk was switched on."},
		{model.MetricTypeGauge, "device_smart_status", "1 if the disk's own health test passes, 0 if it fails."},
		{model.MetricTypeGauge, "device_status", "The same as smartctl_device_smart_status."},
		{model.MetricTypeGauge, "device_state", "State of the disk as SCT reports it: 0 active, 1 standby, 2 sleep, 3 and 4 self-tests, 5 an SCT command."},
		{model.MetricTypeGauge, "device_error_log_count", "Number of entries in the disk's error log."},
		{model.MetricTypeGauge, "device_self_test_log_count", "Entries of the disk's log of self-tests."},
		{model.MetricTypeGauge, "device_self_test_log_error_count", "Entries of the disk's log of self-tests that are failures."},
		{model.MetricTypeCounter, "device_percentage_used", "Share of the disk's rated life that is used, in percent; it can exceed 100."},
		{model.MetricTypeCounter, "device_available_spare", "Remaining spare blocks, in percent."},
		{model.MetricTypeCounter, "device_available_spare_threshold", "Share of spare blocks below which the disk reports a warning, in percent."},
		{model.MetricTypeCounter, "device_critical_warning", "Warnings of the NVMe disk as a bit mask; 0 means no warning."},
		{model.MetricTypeCounter, "device_media_errors", "Data errors of the NVMe disk that were not corrected."},
		{model.MetricTypeCounter, "device_num_err_log_entries", "Entries that the NVMe disk has written to its error log over its life."},
		{model.MetricTypeCounter, "device_bytes_read", "Bytes read from the NVMe or SCSI disk."},
		{model.MetricTypeCounter, "device_bytes_written", "Bytes written to the NVMe or SCSI disk."},
		{model.MetricTypeCounter, "scsi_grown_defect_list", "Blocks that the SCSI disk has replaced."},
		{model.MetricTypeCounter, "read_errors_corrected_by_eccfast", "Reads corrected by the error-correcting code without delay."},
		{model.MetricTypeCounter, "read_errors_corrected_by_eccdelayed", "Reads corrected by the error-correcting code with a delay."},
		{model.MetricTypeCounter, "read_errors_corrected_by_rereads_rewrites", "Reads that succeeded only when repeated."},
		{model.MetricTypeCounter, "read_total_uncorrected_errors", "Reads that failed."},
		{model.MetricTypeCounter, "write_errors_corrected_by_eccfast", "Writes corrected by the error-correcting code without delay."},
		{model.MetricTypeCounter, "write_errors_corrected_by_eccdelayed", "Writes corrected by the error-correcting code with a delay."},
		{model.MetricTypeCounter, "write_errors_corrected_by_rereads_rewrites", "Writes that succeeded only when repeated."},
		{model.MetricTypeCounter, "write_total_uncorrected_errors", "Writes that failed."},
	} {
		f[row.name] = &probes.Family{Name: "smartctl_" + row.name, Help: row.help, Type: row.typ}
	}
	return f
}

// dataUnit is the unit of an NVMe disk's data counters: a thousand blocks of 512 bytes, regardless of its
// block size (NVM Express, base specification 2.0, figure 207).
const dataUnit = 512_000

// writer adds the samples of one disk.
type writer struct {
	families
	round  *probes.Round
	device string
}

// add adds a value unless it is nil.
func (w *writer) add(name string, v *float64, labels ...string) {
	if v != nil {
		w.round.Add(w.families[name], *v, append([]string{"device", w.device}, labels...)...)
	}
}

func (w *writer) set(name string, v float64, labels ...string) { w.add(name, &v, labels...) }

// native adds the smartctl_* of a capture.
func (w *writer) native(c *capture) {
	w.set("device", 1, "interface", c.Device.Type, "protocol", c.Device.Protocol, "model_family", c.ModelFamily, "model_name", c.ModelName,
		"serial_number", c.Serial, "firmware_version", c.Firmware, "ata_version", c.ATAVersion.String, "sata_version", c.SATAVersion.String, "form_factor", c.FormFactor.Name,
		"ata_additional_product_id", c.Addition, "scsi_vendor", c.Vendor, "scsi_product", c.Product, "scsi_revision", c.Revision, "scsi_version", c.Standard)
	if c.Capacity != nil {
		w.add("device_capacity_blocks", c.Capacity.Blocks)
		w.add("device_capacity_bytes", c.Capacity.Bytes)
	}
	w.add("device_nvme_capacity_bytes", c.NVMeSize)
	w.add("device_block_size", c.LogicalBlock, "blocks_type", "logical")
	w.add("device_block_size", c.PhysicalBlock, "blocks_type", "physical")
	for kind, speed := range c.InterfaceSpeed {
		w.set("device_interface_speed", speed.UnitsPerSecond*speed.BitsPerUnit, "speed_type", kind)
	}
	if c.PowerOn != nil {
		w.set("device_power_on_seconds", c.PowerOn.Hours*3600+c.PowerOn.Minutes*60)
	}
	if c.Rotation != nil && *c.Rotation > 0 {
		w.add("device_rotation_rate", c.Rotation)
	}
	for kind, v := range c.Temperature {
		if degrees, ok := v.(float64); ok {
			w.set("device_temperature", degrees, "temperature_type", kind)
		}
	}
	w.add("device_power_cycle_count", c.PowerCycles)
	if passed, ok := c.passed(); ok {
		v := 0.0
		if passed {
			v = 1
		}
		w.set("device_smart_status", v)
		w.set("device_status", v)
	}
	w.add("device_state", c.SCT.State)
	for kind, log := range c.ErrorLog {
		w.add("device_error_log_count", log.Count, "error_log_type", kind)
	}
	for kind, log := range c.SelfTestLog {
		w.add("device_self_test_log_count", log.Count, "self_test_log_type", kind)
		w.add("device_self_test_log_error_count", log.Errors, "self_test_log_type", kind)
	}
	for i := range c.Attributes.Table {
		a := &c.Attributes.Table[i]
		if slices.ContainsFunc(c.Attributes.Table[:i], func(b attribute) bool { return a.ID == b.ID && a.Name == b.Name }) {
			continue // some disks have one number for two attributes: their series would be the same
		}
		w.attribute(a)
	}
	w.nvme(c.NVMe)
	w.scsi(c)
}

func (w *writer) attribute(a *attribute) {
	var long []string
	for _, flag := range [...]struct {
		on   bool
		name string
	}{
		{a.Flags.Prefailure, "prefailure"}, {a.Flags.UpdatedOnline, "updated_online"}, {a.Flags.Performance, "performance"},
		{a.Flags.ErrorRate, "error_rate"}, {a.Flags.EventCount, "event_count"}, {a.Flags.AutoKeep, "auto_keep"},
	} {
		if flag.on {
			long = append(long, flag.name)
		}
	}
	for _, v := range [...]struct {
		kind  string
		value float64
	}{{"value", a.Value}, {"worst", a.Worst}, {"thresh", a.Thresh}, {"raw", a.Raw.Value}} {
		w.set("device_attribute", v.value, "attribute_name", a.Name, "attribute_flags_short", strings.TrimSpace(a.Flags.String),
			"attribute_flags_long", strings.Join(long, ","), "attribute_value_type", v.kind, "attribute_id", strconv.Itoa(a.ID))
	}
}

func (w *writer) nvme(n *nvmeHealth) {
	if n == nil {
		return
	}
	w.add("device_percentage_used", n.Used)
	w.add("device_available_spare", n.Spare)
	w.add("device_available_spare_threshold", n.SpareThreshold)
	w.add("device_critical_warning", n.Warning)
	w.add("device_media_errors", n.MediaErrors)
	w.add("device_num_err_log_entries", n.ErrorEntries)
	if n.UnitsRead != nil {
		w.set("device_bytes_read", *n.UnitsRead*dataUnit)
	}
	if n.UnitsWritten != nil {
		w.set("device_bytes_written", *n.UnitsWritten*dataUnit)
	}
}

func (w *writer) scsi(c *capture) {
	w.add("scsi_grown_defect_list", c.Defects)
	if c.PowerCycles == nil {
		w.add("device_power_cycle_count", c.SCSIStarts.Sum)
	}
	for _, way := range [...]struct{ name, bytes string }{{"read", "device_bytes_read"}, {"write", "device_bytes_written"}} {
		log := c.SCSIErrors[way.name]
		w.add(way.name+"_errors_corrected_by_eccfast", log.Fast)
		w.add(way.name+"_errors_corrected_by_eccdelayed", log.Delayed)
		w.add(way.name+"_errors_corrected_by_rereads_rewrites", log.Corrected)
		w.add(way.name+"_total_uncorrected_errors", log.Uncorrected)
		if v, err := log.Gigabytes.Float64(); err == nil {
			w.set(way.bytes, v*1e9)
		}
	}
}
