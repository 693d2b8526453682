// Package agent puts the program together: it reads the configuration, builds the log, the targets, the probes and the
// web server, starts, changes and stops them in order, and collects the facts of the status.
//
// Start goes downstream first: log, targets, web, then probes. Stop goes upstream first: probes commit their round and
// end, targets may send for a short moment, savepoints are saved, the log closes. Undelivered samples stay on disk.
package agent
