// Package config reads agent.yaml. [Load] reads the file and those of conf.d beside it, expands variables, decodes the keys into
// a [Config], adds the defaults and checks all rules. It stops at no mistake: it reports all of them as [Errors], each with its
// file, its line, that line unless it may have a secret, and what to write instead.
//
// The stages of Load, in order, and the files that have them:
//
//   - load.go runs the stages. files.go finds the files and joins them into one tree; document.go keeps the positions in the tree.
//   - prometheus.go takes the keys out that only a Prometheus has.
//   - expand.go replaces ${VAR}, ${file:PATH} and ${host:FACT}.
//   - decode.go decodes the tree into the types: config.go, probe.go, receivers.go, pull.go, scrape.go.
//   - validate.go adds defaults and checks rules; receivers.go, pull.go, probe.go, sites.go and devices.go check those of their keys.
//   - scrape.go decodes scrape_configs into the scraper's own types; jobs.go adapts its jobs.
//   - devices.go turns an entry with a list of devices into one probe for each device; probespec.go says how a probe runs.
//
// A message must not show a secret: mask.go decides by the types which values may be shown, source.go shows a line only if all
// of its values may be, and given.go finds the texts from variables and files inside addresses and commands. error.go has the form of a message.
//
// The other files serve readers of a configuration: show.go people, schema.go editors, namedfiles.go the check of files,
// fingerprint.go the search for changed files, and lookup.go commands that name one target or probe.
//
// The package starts nothing. A Config is plain data, which several goroutines may read; only [Config.ExpandDevices] changes it.
package config
