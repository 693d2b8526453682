//go:build minimal

package agent

import (
	"log/slog"
	"reflect"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/inputs"
	"hwsagent/meter"
)

// This build has no scraper, whose dependencies would make the binary half as large again.

const canScrape = false

func scrapeTypes() []reflect.Type { return nil }

func parseScrape(*document, scrapeSource) scrapeJobs { return nil }

func newScraper(*Config, *inputs.Path, prometheus.Registerer, *slog.Logger) scraper { return nil }

func scrapeMetrics() []meter.Metric { return nil }
