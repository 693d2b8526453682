package host

import (
	"fmt"
	"strconv"

	"github.com/prometheus/procfs"
)

// newIPVS reads the kernel's load balancer: /proc/net/ip_vs_stats and ip_vs.
func newIPVS(e *environment) reader {
	connections := counter("node_ipvs_connections_total", "Connections through IPVS.")
	packetsIn := counter("node_ipvs_incoming_packets_total", "Packets to IPVS.")
	packetsOut := counter("node_ipvs_outgoing_packets_total", "Packets from IPVS.")
	bytesIn := counter("node_ipvs_incoming_bytes_total", "Bytes to IPVS.")
	bytesOut := counter("node_ipvs_outgoing_bytes_total", "Bytes from IPVS.")
	active := gauge("node_ipvs_backend_connections_active", "Active connections, by virtual and real server.")
	inactive := gauge("node_ipvs_backend_connections_inactive", "Inactive connections, by virtual and real server.")
	weight := gauge("node_ipvs_backend_weight", "Weight of a real server, by virtual and real server.")
	return newOnce(e, func() (samples, error) {
		fs, err := procfs.NewFS(e.ProcPath)
		if err != nil {
			return nil, fmt.Errorf("open procfs: %w", err)
		}
		stats, err := fs.IPVSStats()
		if err != nil {
			return nil, optional(err)
		}
		var s samples
		s.add(connections, float64(stats.Connections))
		s.add(packetsIn, float64(stats.IncomingPackets))
		s.add(packetsOut, float64(stats.OutgoingPackets))
		s.add(bytesIn, float64(stats.IncomingBytes))
		s.add(bytesOut, float64(stats.OutgoingBytes))
		backends, err := fs.IPVSBackendStatus()
		if err != nil {
			return s, fmt.Errorf("read the servers of IPVS: %w", err)
		}
		for _, b := range backends {
			local := "" // a service selected by firewall mark has no address
			if b.LocalAddress != nil {
				local = b.LocalAddress.String()
			}
			labels := []string{
				"local_address", local, "local_port", strconv.Itoa(int(b.LocalPort)),
				"remote_address", b.RemoteAddress.String(), "remote_port", strconv.Itoa(int(b.RemotePort)),
				"proto", b.Proto, "local_mark", b.LocalMark,
			}
			s.add(active, float64(b.ActiveConn), labels...)
			s.add(inactive, float64(b.InactConn), labels...)
			s.add(weight, float64(b.Weight), labels...)
		}
		return s, nil
	})
}
