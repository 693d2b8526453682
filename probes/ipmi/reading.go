package ipmi

import (
	"context"
	"errors"

	"hwsagent/probes/hw"
)

// reading is the current state of a sensor.
type reading struct {
	*sensor
	there  bool // present: scanned, with a value or states
	value  float64
	valued bool   // value is valid
	states uint16 // of a discrete sensor; of a threshold sensor, the limits exceeded
	known  bool   // states is valid
	limits [6]limit
}

type limit struct {
	value float64
	set   bool
}

// read requests a sensor's reading (section 35.14).
func (s *sensor) read(ctx context.Context, l link) (reading, error) {
	r := reading{sensor: s}
	answer, err := l.ask(ctx, s.lun, netSensor, getReading, s.number)
	var refused completion
	switch {
	case errors.As(err, &refused) && refused != busy && refused != notEnoughRight:
		return r, nil // not present now: an unplugged part, or one without power
	case err != nil:
		return r, err
	case len(answer) < 2:
		return r, errShort
	}
	if scanned, unavailable := answer[1]&0x40 != 0, answer[1]&0x20 != 0; !scanned || unavailable {
		return r, nil
	}
	r.there = true
	if len(answer) > 2 {
		r.states, r.known = uint16(answer[2]), true
		if s.reading == threshold {
			r.states &= 0x3f
		}
	}
	if s.reading != threshold && len(answer) > 3 {
		r.states |= uint16(answer[3]&0x7f) << 8
	}
	if !s.analog {
		return r, nil
	}
	now := *s
	if s.linear >= nonLinear {
		answer, err := l.ask(ctx, s.lun, netSensor, getFactors, s.number, answer[0])
		if err != nil || len(answer) < 7 {
			return r, nil // the state is known, the value is not
		}
		now.factors = parseFactors(answer[1:7])
	}
	r.value, r.valued = now.value(answer[0])
	for i, raw := range s.limits {
		if s.limitsAreKnown && s.readable&(1<<i) != 0 && s.linear < nonLinear {
			r.limits[i].value, r.limits[i].set = s.value(raw)
		}
	}
	return r, nil
}

// readLimits requests the limits of a sensor that has readable ones (section 35.9). It does not fall back to those of the
// record: firmware leaves zeros there.
func (s *sensor) readLimits(ctx context.Context, l link) error {
	if s.limitsAreKnown || !s.analog || s.reading != threshold || s.limitAccess != 1 && s.limitAccess != 2 {
		return nil
	}
	answer, err := l.ask(ctx, s.lun, netSensor, getThresholds, s.number)
	var refused completion
	if errors.As(err, &refused) {
		return nil
	} else if err != nil {
		return err
	}
	if len(answer) < 7 {
		return nil
	}
	s.readable = answer[0] & 0x3f
	copy(s.limits[:], answer[1:7])
	s.limitsAreKnown = true
	return nil
}

// threshold is the event/reading type of a sensor with limits; specific, of one whose states depend on its type (table 42-1).
const (
	threshold = 0x01
	specific  = 0x6f
)

// limitTypes are the limits in bit order: lower non-critical, critical, non-recoverable, then the upper ones.
var limitTypes = [6]string{"low.degraded", "low.critical", "low.nonrecoverable", "high.degraded", "high.critical", "high.nonrecoverable"}

// status returns the status of a sensor's part, from its limits or states.
func (r *reading) status() hw.Status {
	switch {
	case !r.there || !r.known:
		return hw.Unknown
	case r.reading == threshold && r.states&0b110110 != 0:
		return hw.Failed
	case r.reading == threshold && r.states != 0:
		return hw.Degraded
	case r.reading == threshold:
		return hw.OK
	}
	table, known := meanings[r.reading]
	if r.reading == specific {
		table, known = specifics[r.kind]
	}
	if !known {
		return 0
	}
	st := hw.OK
	for bit, made := range table {
		if r.states&(1<<bit) != 0 {
			st = st.Join(made)
		}
	}
	return st
}

// state returns ipmi_exporter's number for a status: 0 nominal, 1 warning, 2 critical; false if unknown.
func state(st hw.Status) (float64, bool) {
	switch {
	case st.Is(hw.Failed):
		return 2, true
	case st.Is(hw.Degraded), st.Is(hw.PredictedFailure):
		return 1, true
	case st.Is(hw.OK):
		return 0, true
	}
	return 0, false
}

const (
	ok        = hw.OK
	degraded  = hw.Degraded
	failed    = hw.Failed
	predicted = hw.PredictedFailure
)

// meanings maps the state bits of generic types (table 42-2).
var meanings = map[byte]map[int]hw.Status{
	0x04: {1: predicted},             // predictive failure
	0x05: {1: degraded},              // limit exceeded
	0x06: {1: degraded},              // performance lags
	0x07: severities,                 // severity
	0x08: {},                         // absent, present
	0x0b: redundancy,                 // redundancy
	0x0a: {7: degraded, 8: degraded}, // availability: degraded, off line
}

var severities = map[int]hw.Status{1: degraded, 2: failed, 3: failed, 4: degraded, 5: failed, 6: failed}

var redundancy = map[int]hw.Status{1: degraded, 2: degraded, 3: degraded, 4: degraded, 5: failed, 6: degraded, 7: degraded}

// Sensor types that are mapped to hw_* (table 42-3).
const (
	typeTemperature = 0x01
	typeVoltage     = 0x02
	typeCurrent     = 0x03
	typeFan         = 0x04
	typeIntrusion   = 0x05
	typeProcessor   = 0x07
	typePowerSupply = 0x08
	typePowerUnit   = 0x09
	typeCooling     = 0x0a
	typeMemory      = 0x0c
	typeDriveSlot   = 0x0d
	typeBattery     = 0x29
)

// specifics maps the state bits of specific sensor types (table 42-3).
var specifics = map[byte]map[int]hw.Status{
	typeIntrusion:   {0: degraded, 1: degraded, 2: degraded, 3: degraded, 4: degraded, 5: degraded, 6: degraded},
	typeProcessor:   {0: failed, 1: failed, 2: failed, 3: failed, 4: failed, 5: failed, 6: failed, 8: failed, 10: degraded, 11: failed, 12: degraded},
	typePowerSupply: {1: failed, 2: predicted, 3: degraded, 4: degraded, 5: degraded, 6: degraded},
	typePowerUnit:   {3: degraded, 4: failed, 5: failed, 6: failed, 7: predicted},
	typeMemory:      {0: degraded, 1: failed, 2: failed, 3: failed, 5: degraded, 7: degraded, 10: failed},
	typeDriveSlot:   {1: failed, 2: predicted, 5: degraded, 6: failed, 8: degraded},
	typeBattery:     {0: degraded, 1: failed},
}
