// Package scrape reads scrape_configs as Prometheus does: by Prometheus' own scrape
// manager, parsers and discovery, which append to a [storage.AppendableV2].
//
// [Parse] turns configurations into [Jobs], with the place of each mistake; a [Scraper]
// runs them. Between the manager and the log stands an appender that makes of a scrape
// one commit, counts what the log refuses, and gives stale markers that were refused to
// the next commit. The package links three clouds' SDKs, since Prometheus' config does;
// nothing else imports it, and `-tags minimal` builds an agent without it.
package scrape
