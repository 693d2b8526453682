package scrape

import (
	"errors"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"
)

// protocol is a format that may be requested from a target, by its name in scrape_protocols.
type protocol string

// The protocols that Prometheus knows.
const (
	protobuf     protocol = "PrometheusProto"
	text004      protocol = "PrometheusText0.0.4"
	text100      protocol = "PrometheusText1.0.0"
	openMetrics0 protocol = "OpenMetricsText0.0.1"
	openMetrics1 protocol = "OpenMetricsText1.0.0"
	openMetrics2 protocol = "OpenMetricsText2.0.0"
)

// mediaTypes returns the media types of the protocols in a request
// (https://prometheus.io/docs/instrumenting/content_negotiation/).
func mediaTypes() map[protocol]string {
	return map[protocol]string{
		protobuf:     "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
		text004:      "text/plain;version=0.0.4",
		text100:      "text/plain;version=1.0.0",
		openMetrics0: "application/openmetrics-text;version=0.0.1",
		openMetrics1: "application/openmetrics-text;version=1.0.0",
		openMetrics2: "application/openmetrics-text;version=2.0.0",
	}
}

// usualProtocols returns the default protocols. Only protobuf carries native histograms.
func usualProtocols(native bool) []protocol {
	usual := []protocol{openMetrics1, openMetrics0, text100, text004}
	if native {
		return append([]protocol{protobuf}, usual...)
	}
	return usual
}

// mediaType returns the media type without parameters, "" for an unknown protocol.
func (p protocol) mediaType() string {
	kind, _, err := mime.ParseMediaType(mediaTypes()[p])
	if err != nil {
		return ""
	}
	return kind
}

// check returns an error if the protocol is unknown.
func (p protocol) check() error {
	known := mediaTypes()
	if _, ok := known[p]; ok {
		return nil
	}
	return fmt.Errorf("unknown scrape protocol %v, supported: %v", p, slices.Sorted(maps.Keys(known)))
}

// checkProtocols checks a list of protocols.
func checkProtocols(all []protocol) error {
	if len(all) == 0 {
		return errors.New("scrape_protocols cannot be empty")
	}
	seen := map[string]bool{}
	for _, p := range all {
		name := strings.ToLower(string(p))
		if seen[name] {
			return fmt.Errorf("duplicated protocol in scrape_protocols, got %v", all)
		}
		seen[name] = true
		if err := p.check(); err != nil {
			return fmt.Errorf("scrape_protocols: %w", err)
		}
	}
	return nil
}
