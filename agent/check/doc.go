// Package check tries what the agent needs for its work: configuration, files, storage, targets, probes and scrape jobs.
// Each failure has a remedy. It decides what is tried and what each outcome means; the agent runs the probes for it.
package check
