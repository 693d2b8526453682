package host

import (
	"regexp"
)

// newTape reads tape drives: the kernel's Documentation/scsi/st.rst, "Sysfs and statistics for tape devices".
// A drive has several nodes; only st0, st1, … are read.
func newTape(e *environment) reader {
	const nanoseconds = 1e9
	attrs := []attr{
		{"in_flight", gauge("node_tape_io_now", "Requests to the drive that are under way."), 0},
		{"io_ns", counter("node_tape_io_time_seconds_total", "Time in which requests waited for the drive, movements included."), nanoseconds},
		{"other_cnt", counter("node_tape_io_others_total", "Requests that neither read nor write."), 0},
		{"read_byte_cnt", counter("node_tape_read_bytes_total", "Bytes read."), 0},
		{"read_cnt", counter("node_tape_reads_completed_total", "Reads."), 0},
		{"read_ns", counter("node_tape_read_time_seconds_total", "Time in which reads waited for the drive."), nanoseconds},
		{"write_byte_cnt", counter("node_tape_written_bytes_total", "Bytes written."), 0},
		{"write_cnt", counter("node_tape_writes_completed_total", "Writes."), 0},
		{"write_ns", counter("node_tape_write_time_seconds_total", "Time in which writes waited for the drive."), nanoseconds},
		{"resid_cnt", counter("node_tape_residual_total", "Reads and writes that moved less than was asked for."), 0},
	}
	drive := regexp.MustCompile(`^st\d+$`)
	d := &devices{dir: e.sys("class/scsi_tape"), wanted: drive.MatchString, guard: guard[samples]{limit: e.limit, panics: e.panics}}
	d.query = func(name string) (s samples) {
		s.addAttrs(d.dir+"/"+name+"/stats", attrs, "device", name)
		return s
	}
	return d
}
