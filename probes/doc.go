// Package probes runs probes on their schedules and appends the samples that they read.
//
// A [Probe] reads one device or subsystem once, into a [Round]. The [Runner] decides when a probe reads and for how long
// at most, adds the target's labels, marks series that disappeared as stale, and commits the round through a
// [storage.AppendableV2]. A probe that hangs, panics or returns invalid samples only loses its own series.
package probes
