package snmp

import (
	"math"
	"testing"
)

// proof is what shows that our value of a disagreement is right. A matter of judgement is no proof: such a disagreement counts.
type proof string

const (
	byMIB    proof = "MIB"    // the object's definition gives the unit, the scale or the meaning
	byDevice proof = "device" // the recorded value itself, or another column of the device
)

// review is a disagreement that was looked at by hand: of one object of one device, with the value that is proven. It forgives
// nothing else: another device, or another value of this one, is wrong.
type review struct {
	device, object, class string
	factor                float64 // what our value is of the one in the results
	proof                 proof
	why                   string
}

var reviewedValues = []review{
	{"ocnos_s9600-32x", "cmmTransLaserBiasCurrent", "current", 0.001, byMIB, "UNITS 0.001 mA"},
	{"ocnos_s9510-28dc-b", "cmmTransLaserBiasCurrent", "current", 0.001, byMIB, "UNITS 0.001 mA"},
	{"snr", "ddmDiagnosisBias", "current", 0.001, byMIB, "UNITS mA"},
	{"apc-mgeups_galaxy7000", "mgoutputLoadPerPhase", "power", 0.00001, byDevice, "upsOutputPercentLoad of the same device is 9"},
	{"dnos_s4048", "dellNetIfTransTransmitBiasCurrentLane1", "current", 0.001, byMIB, "UNITS mA"},
	{"dnos_s4048", "dellNetIfTransTransmitBiasCurrentLane2", "current", 0.001, byMIB, "UNITS mA"},
	{"dnos_s4048", "dellNetIfTransTransmitBiasCurrentLane3", "current", 0.001, byMIB, "UNITS mA"},
	{"dnos_s4048", "dellNetIfTransTransmitBiasCurrentLane4", "current", 0.001, byMIB, "UNITS mA"},
	{"dnos_z9100-on", "dellNetIfTransTransmitBiasCurrentLane1", "current", 0.001, byMIB, "UNITS mA"},
	{"dnos_z9100-on", "dellNetIfTransTransmitBiasCurrentLane2", "current", 0.001, byMIB, "UNITS mA"},
	{"dnos_z9100-on", "dellNetIfTransTransmitBiasCurrentLane3", "current", 0.001, byMIB, "UNITS mA"},
	{"dnos_z9100-on", "dellNetIfTransTransmitBiasCurrentLane4", "current", 0.001, byMIB, "UNITS mA"},
	{"fs-ruijie_s3410", "fsFiberBias", "current", 0.001, byMIB, "microamperes"},
	{"hpe-pdumm", "breakerCurrent", "current", 0.01, byMIB, "hundredths of an ampere"},
	{"huawei-smu", "hwRectsTotalCurrent", "current", 0.1, byMIB, "accurate to one decimal place: tenths of an ampere"},
	{"huawei-smu", "hwDcsTotalCurrent", "current", 0.1, byMIB, "accurate to one decimal place: tenths of an ampere"},
	{"huawei-smu", "hwDcOutputCurrent", "current", 0.1, byMIB, "accurate to one decimal place: tenths of an ampere"},
	{"huawei-smu_11b", "hwRectsTotalCurrent", "current", 0.1, byMIB, "accurate to one decimal place: tenths of an ampere"},
	{"huawei-smu_11b", "hwDcsTotalCurrent", "current", 0.1, byMIB, "accurate to one decimal place: tenths of an ampere"},
	{"huawei-smu_11b", "hwDcOutputCurrent", "current", 0.1, byMIB, "accurate to one decimal place: tenths of an ampere"},
	{"junos_ber", "jnxPMCurTxLaserBiasCurrent", "current", 0.1, byMIB, "UNITS .1 mA"},
	{"microsens-g6", "informationTxPower", "dbm", 5.8 / 7, byDevice, "theirs is informationRxPower"},
	{"microsens-g6", "informationTxPower", "dbm", 5.5 / 7.4, byDevice, "theirs is informationRxPower"},
	{"nokia-1830_pss8-multichassis", "tnOtPortRxPower", "dbm", 10, byMIB, "UNITS mBm: hundredths of a decibel"},
	{"nokia-1830_pss8-multichassis", "tnOtPortTxPower", "dbm", 10, byMIB, "UNITS mBm: hundredths of a decibel"},
	{"nokia-1830_pss8-singlechassis", "tnOtPortRxPower", "dbm", 10, byMIB, "UNITS mBm: hundredths of a decibel"},
	{"nokia-1830_pss8-singlechassis", "tnOtPortTxPower", "dbm", 10, byMIB, "UNITS mBm: hundredths of a decibel"},
	{"sinetica", "upsInputVoltage", "voltage", 10, byDevice, "208 V and 495 A are the 58,500 W of its upsOutputPower"},
	{"sinetica", "upsOutputVoltage", "voltage", 10, byDevice, "208 V and 495 A are the 58,500 W of its upsOutputPower"},
	{"sinetica", "upsOutputPower", "power", 10, byDevice, "208 V between phases and 495 A"},
	{"vrp_ne8000-m8", "hwEntityOpticalTxPower", "dbm", 2.56 / -5.9176, byDevice, "hundredths of a decibel, as its powers by lane; its limits are -150 and 450"},
	{"vrp_ne8000-m8", "hwEntityOpticalTxPower", "dbm", 2.67 / -5.7349, byDevice, "hundredths of a decibel, as its powers by lane; its limits are -150 and 450"},
	{"vrp_ne8000-m8", "hwEntityOpticalTxPower", "dbm", 3.4 / -4.6852, byDevice, "hundredths of a decibel, as its powers by lane; its limits are -150 and 450"},
	{"vertiv-dcs", "mpduMpscom8ActivePower", "power", 100, byMIB, "hundredths of a kilowatt"},
}

// reviewedValue returns why ours is right and theirs is not, "" if that was not looked at.
func (s *score) reviewedValue(device, object, class string, theirs, ours float64) string {
	for _, r := range reviewedValues {
		if r.device == device && r.object == object && r.class == class && math.Abs(ours-theirs*r.factor) <= 0.02*math.Abs(ours) {
			s.forgiven[r] = true
			return string(r.proof) + ": " + r.why
		}
	}
	return ""
}

// stateReview is a review of one value of a state.
type stateReview struct {
	device, object, value, ours string
	proof                       proof
	why                         string
}

var reviewedStates = []stateReview{
	{"axiscam_box", "tempSensorStatus", "0", "ok", byDevice, "the recording has ok(1)"},
	{"axiscam_d3110-mk-ii", "tempSensorStatus", "0", "ok", byDevice, "the recording has ok(1)"},
	{"axiscam_d4200-ve", "tempSensorStatus", "0", "ok", byDevice, "the recording has ok(1)"},
	{"axiscam_i8116-e", "tempSensorStatus", "0", "ok", byDevice, "the recording has ok(1)"},
	{"axiscam_p1375", "tempSensorStatus", "0", "ok", byDevice, "the recording has ok(1)"},
	{"axiscam_p1425-le-mk-ii", "tempSensorStatus", "0", "ok", byDevice, "the recording has ok(1)"},
	{"axiscam_p1435-le", "tempSensorStatus", "0", "ok", byDevice, "the recording has ok(1)"},
	{"axiscam_p1455-le", "tempSensorStatus", "0", "ok", byDevice, "the recording has ok(1)"},
	{"axiscam_p5676-le", "tempSensorStatus", "0", "ok", byDevice, "the recording has ok(1)"},
	{"axiscam_q6074", "tempSensorStatus", "0", "ok", byDevice, "the recording has ok(1)"},
	{"boss_ers3510", "s5ChasComOperState", "0", "ok", byDevice, "the recording has normal(5)"},
	{"boss_ers4950", "s5ChasComOperState", "0", "ok", byDevice, "the recording has normal(5)"},
	{"dsm", "diskStatus", "2", "ok", byMIB, "initialized: it has no volume, and nothing is wrong"},
	{"fortiswitch_s248ep", "entPhySensorOperStatus", "2", "unknown", byMIB, "unavailable: the agent cannot read it now"},
	{"hirschmann", "hmLEDRSFault", "1", "ok", byMIB, "off"},
	{"junos_qfx5100", "jnxYellowAlarmState", "3", "warning", byMIB, "on: the lesser of two alarms"},
	{"junos_qfx5130-32cd-evo", "jnxYellowAlarmState", "3", "warning", byMIB, "on: the lesser of two alarms"},
	{"routeros_rb5009upr+s+", "mtxrPOEStatus", "5", "critical", byMIB, "shortCircuit"}, //nolint:misspell // the name of an operating system
	{"rutos-2xx_rut240v7", "rut2MTemperature", "360", "", byMIB, "tenths of degrees Celsius"},
	{"socomec-ups", "upsBatteryStatus", "3", "ok", byMIB, "batteryCharging; another result has its OID for upsOutputSource"},
	{"swos_css106-1g-4p-1s", "mtxrPOEStatus", "5", "critical", byMIB, "shortCircuit"},
	{"swos_css610-8p-2s+", "mtxrPOEStatus", "5", "critical", byMIB, "shortCircuit"},
}

// reviewedState is as reviewedValue, of a state.
func (s *score) reviewedState(device, object, value, ours string) string {
	for _, r := range reviewedStates {
		if r.device == device && r.object == object && r.value == value && r.ours == ours {
			s.forgiven[r] = true
			return string(r.proof) + ": " + r.why
		}
	}
	return ""
}

// judgeReviews fails for reviews that no recording needs: what they forgave is gone, and they would hide the next mistake.
func (s *score) judgeReviews(t *testing.T) {
	for _, r := range reviewedValues {
		if !s.forgiven[r] {
			t.Errorf("no recording has the reviewed disagreement %+v", r)
		}
	}
	for _, r := range reviewedStates {
		if !s.forgiven[r] {
			t.Errorf("no recording has the reviewed disagreement %+v", r)
		}
	}
}
