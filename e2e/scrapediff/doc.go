// Package scrapediff compares the agent's scraper with Prometheus' own. It is a separate module, because it needs
// Prometheus' scraper, configuration and TSDB, and the agent must not depend on these.
//
// It compares in two ways. Twins scrape the same pages, in the time of testing/synctest, into the same
// recording storage: each setting, each format, and the pages that a fuzzer finds. Real scrapers run in real time
// into a TSDB and into the agent's log; then both are read. Package otlpdiff compares the translations of OTLP.
package scrapediff
