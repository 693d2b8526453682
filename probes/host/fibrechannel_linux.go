package host

import (
	"math"
	"strings"
)

// newFibreChannel reads Fibre Channel adapters: /sys/class/fc_host.
func newFibreChannel(e *environment) reader {
	info := gauge("node_fibrechannel_info", "Always 1; the labels describe the adapter.")
	var counters []attr
	for _, c := range []struct{ file, name, help string }{
		{"dumped_frames", "dumped_frames_total", "Frames that were dumped."},
		{"error_frames", "error_frames_total", "Frames with errors."},
		{"fcp_packet_aborts", "fcp_packet_aborts_total", "Packets that were aborted."},
		{"invalid_crc_count", "invalid_crc_total", "Frames with a wrong checksum."},
		{"invalid_tx_word_count", "invalid_tx_words_total", "Words that were not valid."},
		{"link_failure_count", "link_failure_total", "How often the link failed."},
		{"loss_of_signal_count", "loss_of_signal_total", "How often the signal was lost."},
		{"loss_of_sync_count", "loss_of_sync_total", "How often the synchronisation was lost."},
		{"nos_count", "nos_total", "How often the other side said that it is not operational."},
		{"rx_frames", "rx_frames_total", "Frames received."},
		{"rx_words", "rx_words_total", "Words received."},
		{"seconds_since_last_reset", "seconds_since_last_reset_total", "Seconds since the adapter was reset."},
		{"tx_frames", "tx_frames_total", "Frames sent."},
		{"tx_words", "tx_words_total", "Words sent."},
	} {
		counters = append(counters, attr{file: "statistics/" + c.file, Family: counter("node_fibrechannel_"+c.name, c.help)})
	}
	d := &devices{dir: e.sys("class/fc_host"), guard: guard[samples]{limit: e.limit, panics: e.panics}}
	d.query = func(name string) samples {
		var s, all samples
		dir := d.dir + "/" + name
		labels := texts(dir,
			"speed", "speed", "port_state", "port_state", "port_type", "port_type", "port_id", "port_id", "port_name", "port_name",
			"fabric_name", "fabric_name", "symbolic_name", "symbolic_name", "supported_classes", "supported_classes",
			"supported_speeds", "supported_speeds", "dev_loss_tmo", "dev_loss_tmo")
		for i := 1; i < len(labels); i += 2 {
			labels[i] = strings.TrimPrefix(labels[i], "0x") // identities and names, in hexadecimal
		}
		s.add(info, 1, append([]string{"fc_host", name}, labels...)...)
		all.addAttrs(dir, counters, "fc_host", name)
		for _, sample := range all {
			if sample.Value != math.MaxUint64 { // an unsupported counter reads as all ones
				s = append(s, sample)
			}
		}
		return s
	}
	return d
}
