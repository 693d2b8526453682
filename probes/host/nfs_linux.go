package host

import (
	"fmt"
	"reflect"

	"github.com/prometheus/procfs/nfs"

	"hwsagent/probes"
)

// newNFS reads the NFS client's statistics: /proc/net/rpc/nfs.
func newNFS(e *environment) reader {
	packets := counter("node_nfs_packets_total", "Packets of the NFS client, by transport.")
	connections := counter("node_nfs_connections_total", "TCP connections of the NFS client.")
	rpcs := counter("node_nfs_rpcs_total", "Calls of the NFS client.")
	retransmissions := counter("node_nfs_rpc_retransmissions_total", "Calls of the NFS client that were sent again.")
	refreshes := counter("node_nfs_rpc_authentication_refreshes_total", "How often the NFS client renewed its credentials.")
	requests := counter("node_nfs_requests_total", "Requests of the NFS client, by version and method.")
	return newOnce(e, func() (samples, error) {
		fs, err := nfs.NewFS(e.ProcPath)
		if err != nil {
			return nil, fmt.Errorf("open procfs: %w", err)
		}
		stats, err := fs.ClientRPCStats()
		if err != nil {
			return nil, optional(err)
		}
		var s samples
		s.add(packets, float64(stats.Network.UDPCount), "protocol", "udp")
		s.add(packets, float64(stats.Network.TCPCount), "protocol", "tcp")
		s.add(connections, float64(stats.Network.TCPConnect))
		s.add(rpcs, float64(stats.ClientRPC.RPCCount))
		s.add(retransmissions, float64(stats.ClientRPC.Retransmissions))
		s.add(refreshes, float64(stats.ClientRPC.AuthRefreshes))
		s.addMethods(requests, "2", stats.V2Stats, true)
		s.addMethods(requests, "3", stats.V3Stats, true)
		s.addMethods(requests, "4", stats.ClientV4Stats, true)
		return s, nil
	})
}

// newNFSd reads the NFS server's statistics: /proc/net/rpc/nfsd.
func newNFSd(e *environment) reader {
	var (
		hits         = counter("node_nfsd_reply_cache_hits_total", "Replies of the NFS server from its cache: the client had lost the first one.")
		misses       = counter("node_nfsd_reply_cache_misses_total", "Calls that the reply cache of the NFS server took in.")
		noCache      = counter("node_nfsd_reply_cache_nocache_total", "Calls that the reply cache of the NFS server left out.")
		stale        = counter("node_nfsd_file_handles_stale_total", "File handles of clients that were not valid any more.")
		bytesRead    = counter("node_nfsd_disk_bytes_read_total", "Bytes that the NFS server read.")
		bytesWritten = counter("node_nfsd_disk_bytes_written_total", "Bytes that the NFS server wrote.")
		threads      = gauge("node_nfsd_server_threads", "Threads of the NFS server.")
		ahead        = gauge("node_nfsd_read_ahead_cache_size_blocks", "Size of the read-ahead cache of the NFS server.")
		notFound     = counter("node_nfsd_read_ahead_cache_not_found_total", "What the read-ahead cache of the NFS server had not.")
		packets      = counter("node_nfsd_packets_total", "Packets of the NFS server, by transport.")
		connections  = counter("node_nfsd_connections_total", "TCP connections to the NFS server.")
		failed       = counter("node_nfsd_rpc_errors_total", "Calls that the NFS server could not take, by reason.")
		rpcs         = counter("node_nfsd_server_rpcs_total", "Calls to the NFS server.")
		requests     = counter("node_nfsd_requests_total", "Requests to the NFS server, by version and method.")
	)
	return newOnce(e, func() (samples, error) {
		fs, err := nfs.NewFS(e.ProcPath)
		if err != nil {
			return nil, fmt.Errorf("open procfs: %w", err)
		}
		stats, err := fs.ServerRPCStats()
		if err != nil {
			return nil, optional(err)
		}
		var s samples
		s.add(hits, float64(stats.ReplyCache.Hits))
		s.add(misses, float64(stats.ReplyCache.Misses))
		s.add(noCache, float64(stats.ReplyCache.NoCache))
		s.add(stale, float64(stats.FileHandles.Stale))
		s.add(bytesRead, float64(stats.InputOutput.Read))
		s.add(bytesWritten, float64(stats.InputOutput.Write))
		s.add(threads, float64(stats.Threads.Threads))
		s.add(ahead, float64(stats.ReadAheadCache.CacheSize))
		s.add(notFound, float64(stats.ReadAheadCache.NotFound))
		s.add(packets, float64(stats.Network.UDPCount), "proto", "udp")
		s.add(packets, float64(stats.Network.TCPCount), "proto", "tcp")
		s.add(connections, float64(stats.Network.TCPConnect))
		s.add(failed, float64(stats.ServerRPC.BadFmt), "error", "fmt")
		s.add(failed, float64(stats.ServerRPC.BadAuth), "error", "auth")
		s.add(failed, float64(stats.ServerRPC.BadcInt), "error", "cInt")
		s.add(rpcs, float64(stats.ServerRPC.RPCCount))
		s.addMethods(requests, "2", stats.V2Stats, false)
		s.addMethods(requests, "3", stats.V3Stats, false)
		s.addMethods(requests, "4", stats.V4Ops, false)
		s.add(requests, float64(stats.WdelegGetattr), "proto", "4", "method", "WdelegGetattr")
		return s, nil
	})
}

// addMethods adds the fields of stats, which are named after the methods of that version of NFS. Calls without effect
// are left out unless null is set.
func (s *samples) addMethods(f *probes.Family, version string, stats any, null bool) {
	v := reflect.ValueOf(stats)
	for i := range v.NumField() {
		switch method := v.Type().Field(i).Name; method {
		case "Op0Unused", "Op1Unused", "Op2Future":
		case "Null":
			if null {
				s.add(f, float64(v.Field(i).Uint()), "proto", version, "method", method)
			}
		default:
			s.add(f, float64(v.Field(i).Uint()), "proto", version, "method", method)
		}
	}
}
