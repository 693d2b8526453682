// Package scrape reads scrape_configs as Prometheus does, and scrapes their targets into a
// [storage.AppendableV2].
//
// [Parse] turns configurations into [Jobs], with the place of each mistake; a [Scraper] runs them.
// Its parts, from the outside in: discovery (discovery.go; dnssd.go, filesd.go, httpsd.go) finds groups
// of targets; a pool makes targets of those of one job (labels.go, target.go) and has a
// loop for each; a loop gets a page at the target's point of each interval (request.go, client.go),
// and a pass (parse.go) appends its samples to one batch with the stale markers of series that have
// ended (cache.go) and the report (report.go). Between the loops and the log stands the sink
// (appender.go), which makes of a scrape one commit, counts what the log refuses, and gives stale
// markers that were refused to the next commit.
//
// What a scrape leads to is what Prometheus stores; a test in package agent compares both. Beyond
// that, everything ends and is bounded, whatever a target or a list of targets answers: requests end
// with their context, and labels are measured before the labels library sees them, which panics at
// 16 MiB.
package scrape
