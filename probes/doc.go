// Package probes runs probes on their schedules and appends what they read.
//
// A [Probe] reads one thing once, into a [Round]; the [Runner] decides when and for how long at most, adds the target's
// labels, marks series that disappeared as stale, and commits the round through a [storage.AppendableV2]. A probe that
// hangs, panics or returns rubbish only loses its own series.
package probes
