// Package agent is the composition root: it reads the configuration, builds the log, the targets, the probes and the
// web server, starts and stops them in order, and assembles the status snapshot for people.
//
// Start goes downstream first: log, targets, web, then probes. Stop goes upstream first: probes commit their round and
// end, targets may send for a short moment, savepoints are saved, the log closes. Undelivered samples stay on disk.
package agent
