package scrape

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/prometheus/common/model"
)

// explain returns why a scrape failed, and what to do about it.
func explain(err error, t *target, cfg *settings) (text, try string) {
	text = err.Error()
	if status, ok := errors.AsType[*statusError](err); ok {
		return text, explainStatus(status.code, t)
	}
	for limit, key := range map[error]string{errBodySize: "body_size_limit", errSampleLimit: "sample_limit"} {
		if errors.Is(err, limit) {
			return text, "raise " + key + ", or let the exporter show less"
		}
	}
	if short, try := explainTLS(err, cfg); try != "" {
		return short, try
	}
	if short, try := explainNetwork(err, t); try != "" {
		return short, try
	}
	return text, "open " + t.shown() + " in a browser: it must be a page of metrics; correct the target, scheme or metrics_path"
}

func explainStatus(code int, t *target) string {
	switch code {
	case 401, 403:
		return "give the job the target's login: basic_auth, authorization or bearer_token_file"
	case 404:
		return fmt.Sprintf("correct metrics_path, which is %s now", t.labels.Get(model.MetricsPathLabel))
	}
	return "look at the exporter's log"
}

func explainTLS(err error, cfg *settings) (text, try string) {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "no known authority has signed the target's certificate", "name the target's CA in tls_config.ca_file"
	}
	if wrong, ok := errors.AsType[x509.HostnameError](err); ok {
		return wrong.Error(), "use a name that the certificate has as the target, or give it as tls_config.server_name"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "the target's certificate has expired or is not valid yet", "renew the certificate, or correct this host's clock"
	}
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	if plain || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return "the target does not speak TLS", "write scheme: http"
	}
	if cfg.Scheme == "http" && strings.Contains(err.Error(), "malformed HTTP response \"\\x15\\x03") {
		return "the target speaks TLS", "write scheme: https"
	}
	return "", ""
}

func explainNetwork(err error, t *target) (text, try string) {
	host, port, _ := net.SplitHostPort(t.labels.Get(model.AddressLabel))
	if port == "" {
		host, port = t.labels.Get(model.AddressLabel), map[string]string{"http": "80", "https": "443"}[t.labels.Get(model.SchemeLabel)]
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("%s: %s", host, dns.Err), "correct the name of the target; look at /etc/resolv.conf"
	}
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused", "is the exporter running, and does it listen on port " + port + "?"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to " + host, "look at this machine's addresses and routes (ip route get)"
	case errors.Is(err, context.DeadlineExceeded), ok && timeout.Timeout():
		return fmt.Sprintf("no complete page within %s", min(t.timeout, tryTime)), "does a firewall let port " + port + " through? If the exporter is slow, raise scrape_timeout and scrape_interval"
	}
	return "", ""
}
