package client

import (
	"net/http"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/wire"
)

// Request is one encoded remote-write request.
type Request struct {
	Body        []byte           // not changed by the sender, free for reuse after Send
	Version     wire.Version     // of the message in it
	Compression wire.Compression // of the body; zstd with version 1.0 only
	Samples     int              // in it, histograms included
	Attempt     int              // 0 for the first attempt with this body (the Retry-Attempt header)
	Fresh       bool             // uses a new connection: behind a balancer it may lead to another receiver
}

// EmptyRequest returns a request without samples. A receiver that accepts it answers 2xx, so it
// tests the route to the receiver without delivering a sample.
func EmptyRequest(v wire.Version) Request {
	return Request{Version: v, Body: wire.Empty(v)}
}

// ServerHeader is the header in all answers of VictoriaMetrics' programs since 2021.
// Source: VictoriaMetrics, lib/httpserver/httpserver.go.
const ServerHeader = "X-Server-Hostname"

// requestHeaders returns the common headers with those of the protocol added, for each version of the message. version is that of the
// agent. It modifies common.
func requestHeaders(common http.Header, version string) (all [wire.NumVersions]http.Header) {
	// Remote write 1.0 and 2.0, "Protocol".
	common.Set("Content-Encoding", wire.Snappy.String())
	common.Set("User-Agent", "hwsagent/"+version)
	for v, of := range [wire.NumVersions]struct{ contentType, message string }{
		wire.V1: {"application/x-protobuf", "0.1.0"},
		wire.V2: {"application/x-protobuf;proto=" + config.MessageV2, "2.0.0"},
	} {
		all[v] = common.Clone()
		all[v].Set("Content-Type", of.contentType)
		all[v].Set("X-Prometheus-Remote-Write-Version", of.message)
	}
	return all
}

// zstdHeaders derives the headers of a zstd request from those of version 1.0, as vmagent sends
// them. Source: VictoriaMetrics, app/vmagent/remotewrite/client.go.
func zstdHeaders(v1 http.Header) http.Header {
	h := v1.Clone()
	h.Set("Content-Encoding", wire.Zstd.String())
	h.Del("X-Prometheus-Remote-Write-Version")
	h.Set("X-VictoriaMetrics-Remote-Write-Version", "1")
	return h
}
