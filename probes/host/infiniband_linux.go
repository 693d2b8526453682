package host

import (
	"math"
	"strconv"
	"strings"
)

// newInfiniband reads InfiniBand and RoCE adapters. Reading a counter may require a command to the adapter's firmware.
func newInfiniband(e *environment) reader {
	tables := []struct {
		dir   string
		attrs []attr
	}{
		{"counters", infinibandAttrs(infinibandCounters[:])},
		{"counters_ext", infinibandAttrs(infinibandOldCounters[:])},
		{"hw_counters", infinibandAttrs(infinibandHardwareCounters[:])},
	}
	info := gauge("node_infiniband_info", "What the adapter is; always 1.")
	state := gauge("node_infiniband_state_id", "The port's logical state: 1 down, 2 initialising, 3 armed, 4 active, 5 about to go.")
	physical := gauge("node_infiniband_physical_state_id", "The port's physical state: 1 asleep, 2 polling, 3 disabled, 4 training, 5 up, 6 recovering.")
	rate := gauge("node_infiniband_rate_bytes_per_second", "The port's speed.")
	lifespan := gauge("node_infiniband_lifespan_seconds", "For how long the adapter repeats a counter's value.")

	d := &devices{dir: e.sys("class/infiniband"), guard: guard[samples]{limit: e.limit, panics: e.panics}}
	d.query = func(name string) samples {
		var s samples
		dir := d.dir + "/" + name
		s.add(info, 1, append([]string{"device", name},
			texts(dir, "board_id", "board_id", "firmware_version", "fw_ver", "hca_type", "hca_type")...)...)
		ports, err := list(dir + "/ports")
		if err != nil {
			return s
		}
		for _, port := range ports {
			labels := []string{"device", name, "port", port}
			dir := dir + "/ports/" + port
			if id, ok := leading(text(dir+"/state"), ":"); ok { // 4: ACTIVE
				s.add(state, id, labels...)
			}
			if id, ok := leading(text(dir+"/phys_state"), ":"); ok {
				s.add(physical, id, labels...)
			}
			if gigabits, ok := leading(text(dir+"/rate"), " "); ok { // 100 Gb/sec (4X EDR)
				s.add(rate, math.Trunc(gigabits*1e9/8), labels...)
			}
			for _, t := range tables {
				s.addAttrs(dir+"/"+t.dir, t.attrs, labels...)
			}
			if ms, ok := number(dir + "/hw_counters/lifespan"); ok {
				s.add(lifespan, math.Trunc(ms/1000), labels...) // whole seconds, as node_exporter has it
			}
		}
		return s
	}
	return d
}

// leading parses the number before a separator.
func leading(s, separator string) (float64, bool) {
	digits, _, ok := strings.Cut(s, separator)
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	return v, ok && err == nil
}

// infinibandAttrs makes families from rows of file, name, help.
func infinibandAttrs(rows [][3]string) []attr {
	attrs := make([]attr, len(rows))
	for i, row := range rows {
		a := attr{row[0], counter("node_infiniband_"+row[1]+"_total", row[2]), 0}
		if strings.Contains(row[0], "_data") {
			a.div = 0.25 // counted in words of four bytes
		}
		attrs[i] = a
	}
	return attrs
}

// infinibandCounters are the files of counters/: the port counters that the
// InfiniBand architecture defines.
var infinibandCounters = [...][3]string{
	{"VL15_dropped", "vl15_dropped", "Management packets dropped for lack of buffers."},
	{"excessive_buffer_overrun_errors", "excessive_buffer_overrun_errors", "How often buffers overran for too long."},
	{"link_downed", "link_downed", "How often the link went down for good."},
	{"link_error_recovery", "link_error_recovery", "How often the link recovered from an error."},
	{"local_link_integrity_errors", "local_link_integrity_errors", "How often local errors were above the limit."},
	{"multicast_rcv_packets", "multicast_packets_received", "Multicast packets received."},
	{"multicast_xmit_packets", "multicast_packets_transmitted", "Multicast packets sent."},
	{"port_rcv_constraint_errors", "port_constraint_errors_received", "Received packets that a constraint forbade."},
	{"port_rcv_data", "port_data_received_bytes", "Bytes received."},
	{"port_rcv_discards", "port_discards_received", "Received packets that were discarded."},
	{"port_rcv_errors", "port_errors_received", "Received packets with errors."},
	{"port_rcv_packets", "port_packets_received", "Packets received."},
	{"port_rcv_remote_physical_errors", "port_receive_remote_physical_errors", "Received packets that were marked bad on their way."},
	{"port_rcv_switch_relay_errors", "port_receive_switch_relay_errors", "Received packets that the switch could not forward."},
	{"port_xmit_constraint_errors", "port_constraint_errors_transmitted", "Packets not sent because a constraint forbade it."},
	{"port_xmit_data", "port_data_transmitted_bytes", "Bytes sent."},
	{"port_xmit_discards", "port_discards_transmitted", "Packets discarded instead of sent."},
	{"port_xmit_packets", "port_packets_transmitted", "Packets sent."},
	{"port_xmit_wait", "port_transmit_wait", "Ticks in which there was something to send and nothing was sent."},
	{"symbol_error", "symbol_error", "Minor errors of the link."},
	{"unicast_rcv_packets", "unicast_packets_received", "Unicast packets received."},
	{"unicast_xmit_packets", "unicast_packets_transmitted", "Unicast packets sent."},
}

// infinibandOldCounters are the files of counters_ext/, before Linux 4.5.
var infinibandOldCounters = [...][3]string{
	{"port_multicast_rcv_packets", "legacy_multicast_packets_received", "Multicast packets received."},
	{"port_multicast_xmit_packets", "legacy_multicast_packets_transmitted", "Multicast packets sent."},
	{"port_rcv_data_64", "legacy_data_received_bytes", "Bytes received."},
	{"port_rcv_packets_64", "legacy_packets_received", "Packets received."},
	{"port_unicast_rcv_packets", "legacy_unicast_packets_received", "Unicast packets received."},
	{"port_unicast_xmit_packets", "legacy_unicast_packets_transmitted", "Unicast packets sent."},
	{"port_xmit_data_64", "legacy_data_transmitted_bytes", "Bytes sent."},
	{"port_xmit_packets_64", "legacy_packets_transmitted", "Packets sent."},
}

// infinibandHardwareCounters are the files of hw_counters/, in which RoCE adapters report on congestion control.
var infinibandHardwareCounters = [...][3]string{
	{"duplicate_request", "duplicate_requests_packets", "Requests received that had been carried out before."},
	{"implied_nak_seq_err", "implied_nak_seq_errors", "Acknowledgements that were ahead of the expected one."},
	{"local_ack_timeout_err", "local_ack_timeout_errors", "Acknowledgements that did not come in time."},
	{"np_cnp_sent", "np_cnp_packets_sent", "Congestion notifications sent."},
	{"np_ecn_marked_roce_packets", "np_ecn_marked_roce_packets_received", "Packets received that were marked for congestion."},
	{"out_of_buffer", "out_of_buffer_drops", "Packets dropped for lack of a work request."},
	{"out_of_sequence", "out_of_sequence_packets_received", "Packets received out of order."},
	{"packet_seq_err", "packet_sequence_errors", "Refusals received because of a packet out of order."},
	{"req_cqe_error", "req_cqes_errors", "Requests that ended with an error."},
	{"req_cqe_flush_error", "req_cqes_flush_errors", "Requests that were flushed with an error."},
	{"req_remote_access_errors", "req_remote_access_errors", "Requests that the other side may not answer."},
	{"req_remote_invalid_request", "req_remote_invalid_request_errors", "Requests that the other side called invalid."},
	{"resp_cqe_error", "resp_cqes_errors", "Responses that ended with an error."},
	{"resp_cqe_flush_error", "resp_cqes_flush_errors", "Responses that were flushed with an error."},
	{"resp_local_length_error", "resp_local_length_errors", "Responses with a wrong length."},
	{"resp_remote_access_errors", "resp_remote_access_errors", "Responses that met an access error."},
	{"rnr_nak_retry_err", "rnr_nak_retry_packets_received", "Refusals received because the receiver was not ready."},
	{"roce_adp_retrans", "roce_adp_retransmits", "Adaptive retransmissions."},
	{"roce_adp_retrans_to", "roce_adp_retransmits_timeout", "Timeouts because of adaptive retransmission."},
	{"roce_slow_restart", "roce_slow_restart_used", "How often slow restart was used."},
	{"roce_slow_restart_cnps", "roce_slow_restart_cnps", "Congestion notifications made by slow restart."},
	{"roce_slow_restart_trans", "roce_slow_restart", "How often slow restart was entered."},
	{"rp_cnp_handled", "rp_cnp_packets_handled", "Congestion notifications obeyed."},
	{"rp_cnp_ignored", "rp_cnp_ignored_packets_received", "Congestion notifications ignored."},
	{"rx_atomic_requests", "rx_atomic_requests", "Atomic requests received."},
	{"rx_dct_connect", "rx_dct_connect_requests", "Dynamic connection requests received."},
	{"rx_icrc_encapsulated", "rx_icrc_encapsulated_errors", "Packets received with a wrong checksum."},
	{"rx_read_requests", "rx_read_requests", "Read requests received."},
	{"rx_write_requests", "rx_write_requests", "Write requests received."},
}
