package snmp

import "math"

// review is a disagreement that was looked at by hand: of one object of one device, with the value that the MIB defines. It forgives
// nothing else: another device, or another value of this one, is wrong.
type review struct {
	device, object, class string
	factor                float64 // what the MIB's value is of the one in the results
	why                   string
}

var reviewedValues = []review{}

// reviewedValue returns why ours is right and theirs is not, "" if that was not looked at.
func reviewedValue(device, object, class string, theirs, ours float64) string {
	for _, r := range reviewedValues {
		if r.device == device && r.object == object && r.class == class && math.Abs(ours-theirs*r.factor) <= 0.02*math.Abs(ours) {
			return r.why
		}
	}
	return ""
}

// stateReview is a review of one value of a state.
type stateReview struct{ device, object, value, ours, why string }

var reviewedStates = []stateReview{}

// reviewedState is as reviewedValue, of a state.
func reviewedState(device, object, value, ours string) string {
	for _, r := range reviewedStates {
		if r.device == device && r.object == object && r.value == value && r.ours == ours {
			return r.why
		}
	}
	return ""
}
