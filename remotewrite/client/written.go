package client

import (
	"net/http"
	"strconv"

	"hwsagent/remotewrite/wire"
)

// Written is the number of items that a receiver says it wrote of a request of remote write 2.0 ("Required Written
// Response Headers"). If any of the headers is present, a missing one means 0; without
// any, the numbers are unknown.
type Written struct {
	Known                          bool
	Samples, Histograms, Exemplars uint64
}

// StatusUnsupported is the status with which a receiver of 2.0 refuses a message type ("Protocol",
// Content-Type).
const StatusUnsupported = http.StatusUnsupportedMediaType

// parseWritten reads the headers. "Each header value MUST be a single 64-bit integer": any other value
// counts as missing.
func parseWritten(h http.Header) (w Written) {
	for _, x := range []struct {
		name string
		n    *uint64
	}{
		{"X-Prometheus-Remote-Write-Samples-Written", &w.Samples},
		{"X-Prometheus-Remote-Write-Histograms-Written", &w.Histograms},
		{"X-Prometheus-Remote-Write-Exemplars-Written", &w.Exemplars},
	} {
		if n, err := strconv.ParseUint(h.Get(x.name), 10, 63); err == nil {
			*x.n, w.Known = n, true
		}
	}
	return w
}

// Stored returns how many of sent samples, histograms included, were written. A receiver that reports
// more than that has written all.
func (w Written) Stored(sent int) int {
	// Two numbers below 2⁶³ do not overflow.
	return int(min(w.Samples+w.Histograms, uint64(sent)))
}

// WroteAll reports whether a refusal concerns something other than the samples, such as exemplars or metadata: receivers of 2.0 that
// write a part of a request say how much.
func (a Answer) WroteAll() bool {
	return a.Version == wire.V2 && a.Samples > 0 && a.Written.Stored(a.Samples) == a.Samples
}

// WrotePart reports whether the target stored some samples of a request that it refused, and not all.
func (a Answer) WrotePart() bool {
	n := a.Written.Stored(a.Samples)
	return a.Version == wire.V2 && 0 < n && n < a.Samples
}
