package host

import (
	"bytes"
	"context"
	"regexp"

	"hwsagent/probes"
)

// netdev reads the counters of /proc/net/dev.
type netdev struct {
	file      file
	sys       string
	exclude   *regexp.Regexp
	labels    labelCache
	columns   [16]*probes.Family
	nohandler *probes.Family
}

func newNetdev(e *environment) reader {
	n := &netdev{
		file:      file{path: e.proc("net/dev")},
		sys:       e.sys("class/net/"),
		exclude:   e.pattern(&e.NetdevExclude),
		labels:    labelCache{name: "device"},
		nohandler: counter("node_network_receive_nohandler_total", "Packets received on an inactive device and dropped."),
	}
	for i, c := range [...]struct{ name, help string }{
		{"receive_bytes", "Bytes received."},
		{"receive_packets", "Packets received."},
		{"receive_errs", "Received packets with errors."},
		{"receive_drop", "Received packets that were dropped, including those missed for lack of buffers."},
		{"receive_fifo", "Overruns of the receive queue."},
		{"receive_frame", "Received packets with length, overrun, CRC or alignment errors."},
		{"receive_compressed", "Compressed packets received."},
		{"receive_multicast", "Multicast packets received."},
		{"transmit_bytes", "Bytes sent."},
		{"transmit_packets", "Packets sent."},
		{"transmit_errs", "Packets that could not be sent because of errors."},
		{"transmit_drop", "Packets that were dropped instead of sent."},
		{"transmit_fifo", "Underruns of the transmit queue."},
		{"transmit_colls", "Collisions."},
		{"transmit_carrier", "Packets that were lost to carrier, abort, heartbeat or window errors."},
		{"transmit_compressed", "Compressed packets sent."},
	} {
		n.columns[i] = counter("node_network_"+c.name+"_total", c.help)
	}
	return n
}

func (n *netdev) read(_ context.Context, r *probes.Round) error {
	b, err := n.file.read()
	if err != nil {
		return err
	}
	for line := range lines(b) {
		// The name may hold a colon (an alias); the two lines of headings hold none.
		colon := bytes.LastIndexByte(line, ':')
		if colon < 0 {
			continue
		}
		name := bytes.TrimSpace(line[:colon])
		if n.exclude.Match(name) {
			continue
		}
		labels := n.labels.of(name)
		rest := line[colon+1:]
		for _, f := range n.columns {
			var digits []byte
			digits, rest = word(rest)
			if v, ok := float(digits); ok {
				r.Add(f, v, labels...)
			}
		}
		if v, ok := number(n.sys + labels[1] + "/statistics/rx_nohandler"); ok {
			r.Add(n.nohandler, v, labels...)
		}
	}
	return nil
}
