package hw

import "math/bits"

// Status is a set of states of a component. The zero Status means that its source never reports its health: such a
// component has no hw_status.
type Status uint8

// The states, from hw.state of the conventions; Unknown is the project's own.
const (
	OK               Status = 1 << iota
	Degraded                // it works, but with a problem
	Failed                  // it does not work, or is beyond a critical limit
	PredictedFailure        // it works but predicts its failure; combined with OK or Degraded
	NeedsCleaning           // of tape drives and filters; combined with OK or Degraded
	Unknown                 // the source reports the health of such components, but not of this one at present
)

// states are the values of the label hw_state, in the order of the bits.
var states = [...]string{"ok", "degraded", "failed", "predicted_failure", "needs_cleaning", "unknown"}

// states returns the states that a component of the kind can be in. hw_status has a series for each of them, so a state that is
// never 1 costs a series of each component. The conventions ask for "each of the possible states".
func (k Kind) states() Status {
	switch k {
	case Temperature, Voltage, Current, Humidity, Frequency, PowerMeter, Intrusion, LeakDetector, Sensor: // a quantity, which cannot fail later
		return health | Unknown
	case TapeDrive, CoolingDevice, Module, OtherDevice: // filters are of the last three
		return health | PredictedFailure | NeedsCleaning | Unknown
	default:
		return health | PredictedFailure | Unknown
	}
}

// within returns the status as a component of the kind reports it: a warning that the kind cannot have becomes Degraded.
func (s Status) within(k Kind) Status {
	all := k.states()
	if s&^all == 0 {
		return s
	}
	return (s & all).Join(Degraded)
}

// health are the states of which a component has at most one.
const health = OK | Degraded | Failed

// Join returns the status of a component for which two sources report s and t: the worse of ok, degraded and failed,
// all warnings of both, and unknown only if there is nothing else.
func (s Status) Join(t Status) Status {
	all := s | t
	worst := Status(0)
	if h := all & health; h != 0 {
		worst = 1 << (bits.Len8(uint8(h)) - 1)
	}
	if known := worst | all&(PredictedFailure|NeedsCleaning); known != 0 {
		return known
	}
	return all & Unknown
}

// Is reports whether the component is in all the states of t.
func (s Status) Is(t Status) bool { return s&t == t }

// String returns the states' names with plus signs between them; "" for the zero Status.
func (s Status) String() string {
	text := ""
	for i, name := range states {
		if s&(1<<i) == 0 {
			continue
		}
		if text != "" {
			text += "+"
		}
		text += name
	}
	return text
}
