package client

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"hwsagent/remotewrite/config"
	"hwsagent/remotewrite/reply"
	"hwsagent/remotewrite/wire"
)

// Request is one encoded remote-write request.
type Request struct {
	Body        []byte           // not changed by the sender, free for reuse after Send
	Version     wire.Version     // of the message in it
	Compression wire.Compression // of the body; zstd with version 1.0 only
	Samples     int              // in it, histograms included
	Attempt     int              // 0 for the first attempt with this body (the Retry-Attempt header)
}

// EmptyRequest returns a request without samples. A receiver that accepts it answers 2xx, so it
// tests the route to the receiver without delivering a sample.
func EmptyRequest(v wire.Version) Request {
	return Request{Version: v, Body: wire.Empty(v)}
}

// Answer is the result of one request. Exactly one of Status and Err is set.
type Answer struct {
	Version     wire.Version     // of the request
	Compression wire.Compression // of the request
	Samples     int              // of the request
	Written     Written          // only of a request of version 2.0

	// VictoriaMetrics: the answer has the header that identifies VictoriaMetrics' programs.
	VictoriaMetrics bool

	Status     int           // the HTTP status, 0 if there was no response
	Err        error         // why there was no response; credentials and query strings are removed
	Failure    Failure       // the failure to show to people; zero on success
	Blocked    bool          // Err is a refusal by a proxy or token endpoint that lasts until a person fixes it
	Again      bool          // sent twice: a kept connection ended without an answer, and the receiver may have taken the request there
	Page       bool          // a 2xx with a web page: a portal or a login answered, not a receiver
	HTML       bool          // the body is a web page, so no receiver wrote it; Text is its title, if it has one
	Text       string        // the beginning of the body, at most 1 KiB, for people
	RetryAfter time.Duration // from the header, between 0 and five minutes; 0 if absent or unreadable
	Date       time.Time     // the response's Date header, zero if absent
	Took       time.Duration // from the call of Send, connecting included, to the last byte read
}

// String returns the answer in one line, for people.
func (a Answer) String() string {
	switch {
	case a.Status == 0 && a.Err != nil:
		return a.Err.Error()
	case a.Page:
		return fmt.Sprintf("%d %s with a web page, which no remote-write receiver sends: %s", a.Status, http.StatusText(a.Status), cmp.Or(a.Text, "it has no title"))
	case a.Status == http.StatusSwitchingProtocols:
		return "answered " + statusText(a.Status, "") + ", not remote write"
	}
	return statusText(a.Status, a.Text)
}

// Why returns in one line for people why the request failed: the words of its failure.
func (a Answer) Why() string { return cmp.Or(a.Failure.Words, a.String()) }

// Accepted reports whether a receiver accepted the request: a 2xx without a web page and, for a body
// of zstd, from VictoriaMetrics.
func (a Answer) Accepted() bool { return a.Status/100 == 2 && !a.Page && !a.unread() }

// unread reports whether a 2xx may come from a receiver that did not read the body: only
// VictoriaMetrics is known to read zstd. Others may answer 2xx to a body that they do not inspect.
func (a Answer) unread() bool { return a.Compression == wire.Zstd && !a.VictoriaMetrics }

// ServerHeader is the header in all answers of VictoriaMetrics' programs since 2021.
// Source: VictoriaMetrics, lib/httpserver/httpserver.go.
const ServerHeader = "X-Server-Hostname"

// Denied reports whether the answer is about credentials.
func (a Answer) Denied() bool {
	return a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden
}

// Reply returns the meaning of the answer's status and words, as far as the table of package
// reply knows them. The words of a web page are ignored, since no receiver wrote them.
func (a Answer) Reply() reply.Reply {
	if a.HTML {
		return reply.Of(a.Status, "<html>")
	}
	return reply.Of(a.Status, a.Text)
}

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
