// Package hw is the common vocabulary of all hardware probes: components, their states and readings, and the resulting
// samples.
//
// The names are those of OpenTelemetry's semantic conventions for hardware, in the version [Conventions], as Prometheus
// writes them. The conventions are in development: a new version changes only table.go. Rows of that table without a
// convention are the project's own, in the same style.
package hw

// Conventions is the version of the semantic conventions in the table, and ConventionsSource its location: the files
// below model/hardware.
const (
	Conventions       = "v1.44.0"
	ConventionsSource = "https://github.com/open-telemetry/semantic-conventions/tree/v1.44.0/model/hardware"
)
