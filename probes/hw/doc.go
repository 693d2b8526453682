// Package hw is the one vocabulary for hardware, whichever probe saw it: components, their
// states and their readings, and the samples that they become.
//
// The names are those of OpenTelemetry's semantic conventions for hardware, in the version
// [Conventions], as Prometheus writes them. The conventions are in development: what a new version
// changes is changed in table.go and nowhere else. Rows of that table without a convention are the
// project's own, in the same style.
package hw

// Conventions is the version of the semantic conventions that the table follows, and
// ConventionsSource where it stands: the files below model/hardware.
const (
	Conventions       = "v1.44.0"
	ConventionsSource = "https://github.com/open-telemetry/semantic-conventions/tree/v1.44.0/model/hardware"
)
