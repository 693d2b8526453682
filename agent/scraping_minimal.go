//go:build minimal

package agent

import (
	"log/slog"
	"reflect"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/inputs"
	"hwsagent/meter"
)

// This build has no scraper: what it links would make the binary larger by a half.

const canScrape = false

func scrapeTypes() []reflect.Type { return nil }

func parseScrape(*document, scrapeSource) scrapeJobs { return nil }

func newScraper(*Config, *inputs.Path, prometheus.Registerer, *slog.Logger) scraper { return nil }

func scrapeMetrics() []meter.Metric { return nil }
