package redfish

import (
	"strings"

	"hwsagent/probes/hw"
)

// absent reports whether the resource is an empty slot.
func absent(o object) bool { return strings.EqualFold(o.text("Status.State"), "Absent") }

// disabled reports whether the resource is switched off: what it gives as a reading is none.
func disabled(o object) bool { return strings.EqualFold(o.text("Status.State"), "Disabled") }

// statusOf returns the state of a resource from its property Status, of the schema Resource.
func statusOf(o object) hw.Status {
	st, ok := o.at("Status").(map[string]any)
	if !ok {
		if s := o.text("Status"); s != "" { // a plain word, from old services
			return healthOf(s)
		}
		return 0
	}
	s := object(st)
	out := healthOf(s.first("Health", "HealthRollup", "HealthRollUp"))
	if out == 0 {
		switch strings.ToLower(s.text("State")) {
		case "enabled", "standbyoffline", "standbyspare", "unavailableoffline", "starting", "updating", "intest", "quiesced", "degraded":
			out = hw.Unknown
		}
	}
	for _, c := range s.list("Conditions") {
		if id := strings.ToLower(c.text("MessageId")); strings.Contains(id, "predictivefail") || strings.Contains(id, "predictedfail") {
			out = out.Join(hw.PredictedFailure)
		}
	}
	return out
}

// healthOf translates a word for health: Redfish's three, and those of vendors' older properties.
func healthOf(word string) hw.Status {
	switch strings.ToLower(word) {
	case "ok", "good", "goodinuse", "normal":
		return hw.OK
	case "warning", "degraded", "caution":
		return hw.Degraded
	case "critical", "failed", "fatal", "error":
		return hw.Failed
	}
	return 0
}

// predicted adds the predictions of drives and their controllers to a status.
func predicted(o object, st hw.Status) hw.Status {
	for _, reason := range [...]string{"DiskDriveStatusReasons", "Oem.Hpe.DriveStatusReasons"} {
		words, _ := o.at(reason).([]any)
		for _, w := range words {
			if text, _ := w.(string); strings.EqualFold(text, "PredictiveFail") {
				st = st.Join(hw.PredictedFailure)
			}
		}
	}
	switch yes, known := o.at("FailurePredicted").(bool); {
	case yes, strings.EqualFold(o.text("StatusIndicator"), "PredictiveFailureAnalysis"),
		strings.EqualFold(o.text("Oem.Dell.DellPhysicalDisk.PredictiveFailureState"), "SmartAlertPresent"):
		return st.Join(hw.PredictedFailure)
	case known && st == 0:
		return hw.OK
	}
	return st
}

// conditionOf adds to a status the properties in which some schemas report a condition of their own: the levels and the quality of a coolant
// (Reservoir, CoolingLoop), and a breaker that has tripped (Circuit).
func conditionOf(o object, st hw.Status) hw.Status {
	for _, key := range [...]string{"FluidLevelStatus", "CoolantLevelStatus", "CoolantQuality"} {
		st = st.Join(healthOf(o.text(key)))
	}
	if strings.EqualFold(o.text("BreakerState"), "Tripped") {
		st = st.Join(hw.Failed)
	}
	return st
}

// leakState returns the state of a leak detector from DetectorState of the schema LeakDetector and its health.
func leakState(o object, st hw.Status) hw.Status {
	return st.Join(healthOf(o.text("DetectorState")))
}
