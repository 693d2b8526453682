package redfish

import (
	"strings"

	"hwsagent/probes/hw"
)

// absent reports whether the resource stands for a place where nothing is plugged in.
func absent(o object) bool { return strings.EqualFold(o.text("Status.State"), "Absent") }

// statusOf is how the resource says that it is: its property Status, of the schema Resource.
func statusOf(o object) hw.Status {
	st, ok := o.at("Status").(map[string]any)
	if !ok {
		if s := o.text("Status"); s != "" { // a bare word, of old services
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

// healthOf is the meaning of a word of health: Redfish's three, and those of vendors' older properties.
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

// predicted adds to a status what drives and their controllers predict.
func predicted(o object, st hw.Status) hw.Status {
	switch yes, known := o.at("FailurePredicted").(bool); {
	case yes, strings.EqualFold(o.text("StatusIndicator"), "PredictiveFailureAnalysis"),
		strings.EqualFold(o.text("Oem.Dell.DellPhysicalDisk.PredictiveFailureState"), "SmartAlertPresent"):
		return st.Join(hw.PredictedFailure)
	case known && st == 0:
		return hw.OK
	}
	return st
}

// leakState is how a leak detector is: DetectorState of the schema LeakDetector, and its health.
func leakState(o object, st hw.Status) hw.Status {
	return st.Join(healthOf(o.text("DetectorState")))
}
