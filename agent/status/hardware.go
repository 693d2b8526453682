package status

import "time"

// Component is a part of a machine or device, as the newest samples in memory describe it.
type Component struct {
	Device string // label instance of its samples
	ID     string // unique within the device
	Name   string
	Type   string
	Vendor string
	Model  string
	Serial string
	Parent string // ID of the component that contains it
	State  string // the worst one: failed, degraded, predicted_failure, needs_cleaning, unknown, ok; "" if its source reports none

	Since time.Time // since when it is in that state
	First bool      // it was in that state when the agent first saw it, so that Since is an upper bound
	Seen  time.Time // time of its newest sample

	Celsius, Limit float64 // of the sensor that is closest to its upper limit; Limit is 0 if unknown
	Watts          float64 // power of the whole machine; 0 if unknown
}

// ComponentLevel returns the level of a component's state.
func ComponentLevel(state string) string {
	switch state {
	case "failed":
		return SeverityError
	case "degraded", "predicted_failure", "needs_cleaning":
		return SeverityWarning
	case "unknown", "":
		return SeverityNote
	}
	return LevelOK
}

// WorseState returns the worse of two states of a component.
func WorseState(a, b string) string {
	for _, state := range [...]string{"failed", "degraded", "predicted_failure", "needs_cleaning", "unknown", "ok"} {
		if a == state || b == state {
			return state
		}
	}
	return ""
}
