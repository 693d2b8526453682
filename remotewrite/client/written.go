package client

import (
	"net/http"
	"strconv"
)

// Written is what a receiver says that it wrote of a request of remote write 2.0
// ("Required Written Response Headers"). A header that is missing stands for none
// written, if another one is there; without any, nothing is known.
type Written struct {
	Known                          bool
	Samples, Histograms, Exemplars uint64
}

// StatusUnsupported is what the specification of 2.0 has a receiver answer that does not
// take a message ("Protocol", Content-Type).
const StatusUnsupported = http.StatusUnsupportedMediaType

// parseWritten reads the headers. "Each header value MUST be a single 64-bit integer": what
// is anything else counts as missing.
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

// Stored is how many of so many samples, histograms included, were written. A receiver
// that counts more than it got has written all.
func (w Written) Stored(sent int) int {
	// Two numbers below 2⁶³ do not overflow.
	return int(min(w.Samples+w.Histograms, uint64(sent)))
}

// Unwritten counts what a 2xx left out.
func (w Written) Unwritten(samples, exemplars int) (s, x int) {
	return samples - w.Stored(samples), exemplars - int(min(w.Exemplars, uint64(exemplars)))
}
