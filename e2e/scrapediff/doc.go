// Package scrapediff compares the agent's scraper with Prometheus' own. It is a module of its own, for what the
// agent must not depend on: Prometheus' scraper, its configuration and its TSDB, pinned in go.mod.
//
// Two kinds of comparison are made. Twins scrape the same pages, in the time of testing/synctest, into the same
// recording storage: each setting, each format, and whatever a fuzzer finds. Real scrapers run in real time
// into a TSDB and into the agent's log, which are then read. Package otlpdiff compares the translations of OTLP.
package scrapediff
