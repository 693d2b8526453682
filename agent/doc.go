// Package agent is the composition root: it reads the configuration, builds the log,
// the targets, the probes and the web server, starts and stops them in order, and
// takes the snapshot that people see.
//
// Start goes downstream first: log, targets, web, then probes. Stop goes upstream
// first: probes commit their round and end, targets send what they have for a short
// moment, savepoints are saved, the log closes. What is undelivered stays on disk.
package agent
