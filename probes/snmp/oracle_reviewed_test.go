package snmp

import "math"

// review is a disagreement that was looked at by hand: of one object of one device, with the value that the MIB defines. It forgives
// nothing else: another device, or another value of this one, is wrong.
type review struct {
	device, object, class string
	factor                float64 // what the MIB's value is of the one in the results
	why                   string
}

var reviewedValues = []review{
	{"ocnos_s9600-32x", "cmmTransLaserBiasCurrent", "current", 0.001, "UNITS mA"},
	{"ocnos_s9510-28dc-b", "cmmTransLaserBiasCurrent", "current", 0.001, "UNITS mA"},
	{"snr", "ddmDiagnosisBias", "current", 0.001, "UNITS mA"},
	{"apc-mgeups_galaxy7000", "mgoutputLoadPerPhase", "power", 0.00001, "a percentage of the rated load"},
	{"dnos_s4048", "dellNetIfTransTransmitBiasCurrentLane1", "current", 0.001, "UNITS mA"},
	{"dnos_s4048", "dellNetIfTransTransmitBiasCurrentLane2", "current", 0.001, "UNITS mA"},
	{"dnos_s4048", "dellNetIfTransTransmitBiasCurrentLane3", "current", 0.001, "UNITS mA"},
	{"dnos_s4048", "dellNetIfTransTransmitBiasCurrentLane4", "current", 0.001, "UNITS mA"},
	{"dnos_z9100-on", "dellNetIfTransTransmitBiasCurrentLane1", "current", 0.001, "UNITS mA"},
	{"dnos_z9100-on", "dellNetIfTransTransmitBiasCurrentLane2", "current", 0.001, "UNITS mA"},
	{"dnos_z9100-on", "dellNetIfTransTransmitBiasCurrentLane3", "current", 0.001, "UNITS mA"},
	{"dnos_z9100-on", "dellNetIfTransTransmitBiasCurrentLane4", "current", 0.001, "UNITS mA"},
	{"fs-ruijie_s3410", "fsFiberBias", "current", 0.001, "microamperes"},
	{"hpe-pdumm", "breakerCurrent", "current", 0.01, "hundredths of an ampere"},
	{"junos_ber", "jnxPMCurTxLaserBiasCurrent", "current", 0.1, "UNITS .1 mA"},
	{"nokia-1830_pss8-multichassis", "tnOtPortRxPower", "dbm", 10, "UNITS mBm: hundredths of a decibel"},
	{"nokia-1830_pss8-multichassis", "tnOtPortTxPower", "dbm", 10, "UNITS mBm: hundredths of a decibel"},
	{"nokia-1830_pss8-singlechassis", "tnOtPortRxPower", "dbm", 10, "UNITS mBm: hundredths of a decibel"},
	{"nokia-1830_pss8-singlechassis", "tnOtPortTxPower", "dbm", 10, "UNITS mBm: hundredths of a decibel"},
	{"vertiv-dcs", "mpduMpscom8ActivePower", "power", 100, "hundredths of a kilowatt"},
}

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

var reviewedStates = []stateReview{
	{"axiscam_box", "tempSensorStatus", "0", "ok", "the recording has ok(1)"},
	{"axiscam_d3110-mk-ii", "tempSensorStatus", "0", "ok", "the recording has ok(1)"},
	{"axiscam_d4200-ve", "tempSensorStatus", "0", "ok", "the recording has ok(1)"},
	{"axiscam_i8116-e", "tempSensorStatus", "0", "ok", "the recording has ok(1)"},
	{"axiscam_p1375", "tempSensorStatus", "0", "ok", "the recording has ok(1)"},
	{"axiscam_p1425-le-mk-ii", "tempSensorStatus", "0", "ok", "the recording has ok(1)"},
	{"axiscam_p1435-le", "tempSensorStatus", "0", "ok", "the recording has ok(1)"},
	{"axiscam_p1455-le", "tempSensorStatus", "0", "ok", "the recording has ok(1)"},
	{"axiscam_p5676-le", "tempSensorStatus", "0", "ok", "the recording has ok(1)"},
	{"axiscam_q6074", "tempSensorStatus", "0", "ok", "the recording has ok(1)"},
	{"boss_ers3510", "s5ChasComOperState", "0", "ok", "the recording has normal(5)"},
	{"boss_ers4950", "s5ChasComOperState", "0", "ok", "the recording has normal(5)"},
	{"ios_4506", "cRFStatusPeerUnitState", "2", "unknown", "disabled: there is no peer"},
	{"ios_ir809", "cRFStatusPeerUnitState", "2", "unknown", "disabled: there is no peer"},
	{"iosxr_asr9001", "cRFStatusPeerUnitState", "2", "unknown", "disabled: there is no peer"},
	{"iosxr_asr9901", "cRFStatusPeerUnitState", "2", "unknown", "disabled: there is no peer"},
	{"iosxr_ncs55a2", "cRFStatusPeerUnitState", "2", "unknown", "disabled: there is no peer"},
	{"dell-os10_s4128ton-psu", "os10PowerSupplyOperStatus", "6", "unknown", "notPresent"},
	{"eltex-mes23xx_mes2348p", "rlPhdUnitEnvParamRedundantPSStatus", "6", "critical", "notFunctioning"},
	{"moxa-etherdevice_eds510e", "power2InputStatus", "0", "warning", "not present: one of two inputs"},
	{"moxa-etherdevice_eds528e", "power2InputStatus", "0", "warning", "not present: one of two inputs"},
	{"moxa-etherdevice_edsg512epoe", "power2InputStatus", "0", "warning", "not present: one of two inputs"},
	{"moxa-etherdevice_edsg516e", "power2InputStatus", "0", "warning", "not present: one of two inputs"},
	{"moxa-etherdevice_edsp506e", "power1InputStatus", "0", "warning", "not present: one of two inputs"},
	{"cms", "segmentNtdExternalInterfaceStatus", "3", "unknown", "disabled"},
	{"cms", "segmentNtdExternalInterfaceStatus", "5", "unknown", "unused"},
	{"cms", "segmentNtdInternalInterfaceStatus", "3", "unknown", "disabled"},
	{"cms", "segmentNtdInternalInterfaceStatus", "5", "unknown", "unused"},
	{"dsm", "diskStatus", "2", "ok", "initialized: it has no volume, and nothing is wrong"},
	{"fortiswitch_s248ep", "entPhySensorOperStatus", "2", "unknown", "unavailable: the agent cannot read it now"},
	{"hirschmann", "hmLEDRSFault", "1", "ok", "off"},
	{"hirschmann", "hmLEDRSRedundancyManager", "1", "ok", "off"},
	{"hirschmann", "hmLEDRStandby", "1", "ok", "off"},
	{"junos_qfx5100", "jnxYellowAlarmState", "3", "warning", "on: the lesser of two alarms"},
	{"junos_qfx5130-32cd-evo", "jnxYellowAlarmState", "3", "warning", "on: the lesser of two alarms"},
	{"pandacom", "nmPSU3Status", "0", "unknown", "notInstalled"},
	{"pandacom_1", "nmPSU3Status", "0", "unknown", "notInstalled"},
	{"pandacom_2", "nmPSU3Status", "0", "unknown", "notInstalled"},
	{"pandacom_3", "nmPSU3Status", "255", "unknown", "notAvailable"},
	{"pandacom_4", "nmPSU3Status", "255", "unknown", "notAvailable"},
	{"pandacom_5", "nmPSU3Status", "0", "unknown", "notInstalled"},
	{"routeros_rb5009upr+s+", "mtxrPOEStatus", "5", "critical", "shortCircuit"}, //nolint:misspell // the name of an operating system
	{"swos", "mtxrPOEStatus", "1", "ok", "disabled"},
	{"swos_css106-1g-4p-1s", "mtxrPOEStatus", "5", "critical", "shortCircuit"},
	{"swos_css610-8p-2s+", "mtxrPOEStatus", "5", "critical", "shortCircuit"},
}

// reviewedState is as reviewedValue, of a state.
func reviewedState(device, object, value, ours string) string {
	for _, r := range reviewedStates {
		if r.device == device && r.object == object && r.value == value && r.ours == ours {
			return r.why
		}
	}
	return ""
}
