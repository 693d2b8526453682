package host

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"slices"
)

// tcpStates are the states of sockets by their number in /proc/net/tcp: the kernel's
// include/net/tcp_states.h. Later numbers have no name in node_exporter.
var tcpStates = map[string]string{
	"01": "established", "02": "syn_sent", "03": "syn_recv", "04": "fin_wait1", "05": "fin_wait2", "06": "time_wait",
	"07": "close", "08": "close_wait", "09": "last_ack", "0A": "listen", "0B": "closing",
}

// newTCPStat counts TCP sockets by state, and the bytes in their queues. The kernel writes a line for each socket, so
// it only runs if configured.
func newTCPStat(e *environment) reader {
	connections := gauge("node_tcp_connection_states", "TCP sockets by state, and bytes in their queues.")
	paths := []string{e.proc("net/tcp"), e.proc("net/tcp6")}
	return newOnce(e, func() (samples, error) {
		found := false
		count := map[string]float64{"rx_queued_bytes": 0, "tx_queued_bytes": 0}
		for _, path := range paths {
			b, err := (&file{path: path}).read()
			if errors.Is(err, fs.ErrNotExist) {
				continue // that IP version is off
			}
			if err != nil {
				return nil, err
			}
			found = true
			for line := range lines(b) {
				countSocket(count, line)
			}
		}
		if !found {
			return nil, errAbsent
		}
		var s samples
		for _, state := range slices.Sorted(maps.Keys(count)) {
			s.add(connections, count[state], "state", state)
		}
		return s, nil
	})
}

// countSocket counts a line: number, local address, remote address, state, queues "tx:rx" in hexadecimal, ….
func countSocket(count map[string]float64, line []byte) {
	fields := bytes.Fields(line)
	if len(fields) < 5 || tcpStates[string(fields[3])] == "" {
		return // the head of the table, or a state without a name
	}
	count[tcpStates[string(fields[3])]]++
	tx, rx, _ := bytes.Cut(fields[4], []byte(":"))
	if v, ok := hexadecimal(tx); ok {
		count["tx_queued_bytes"] += v
	}
	if v, ok := hexadecimal(rx); ok {
		count["rx_queued_bytes"] += v
	}
}
