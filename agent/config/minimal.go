//go:build minimal

package config

import "reflect"

// A minimal build has neither a scraper nor a receiver for OTLP, whose dependencies would make the binary half as large again.
const (
	canScrape      = false
	canReceiveOTLP = false
)

func scrapeTypes() []reflect.Type { return nil }

func parseScrape(*document, scrapeSource) ScrapeJobs { return nil }
