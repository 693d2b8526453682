// Package scrape reads scrape_configs as Prometheus does, and scrapes their targets into a
// [storage.AppendableV2].
//
// [Jobs.Add] turns configurations into [Jobs], with the place of each mistake; a [Scraper] runs them.
// Its parts, from the outside in: discovery (discovery.go; dnssd.go, filesd.go, httpsd.go) finds groups
// of targets; a pool turns the groups of one job into targets (labels.go, target.go) and runs a
// loop for each; a loop gets a page at the target's point of each interval (request.go, client.go),
// and a pass (parse.go) appends its samples to one batch with the stale markers of series that have
// ended (cache.go) and the report (report.go). The sink (appender.go) connects the loops to the log:
// it makes one commit of each scrape, counts samples that the log refuses, and adds stale markers
// whose commit failed to the next commit.
//
// A scrape stores the same samples as in Prometheus; the module e2e/scrapediff compares both. In
// addition, all work ends and is bounded, whatever a target or a list of targets answers: requests
// end with their context, and labels are measured before they reach the labels library, which panics
// at 16 MiB.
package scrape
