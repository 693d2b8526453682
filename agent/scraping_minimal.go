//go:build minimal

package agent

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/agent/config"
	"hwsagent/agent/inputs"
	"hwsagent/internal/meter"
)

// This build has no scraper, whose dependencies would make the binary half as large again.

func newScraper(*config.Config, *inputs.Path, prometheus.Registerer, *slog.Logger) scraper {
	return nil
}

func scrapeMetrics() []meter.Metric { return nil }
