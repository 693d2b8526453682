package snmp

import (
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/gosnmp/gosnmp"
)

// status is the state set of one piece of hardware.
func status(labels, state string) map[string]float64 {
	id, kind, _ := strings.Cut(labels, " hw_type=")
	m := map[string]float64{"hw_component_info{" + id + ",hw_type=" + kind + "}": 1}
	states := []string{"degraded", "failed", "ok", "unknown"}
	if kind == `"fan"` {
		states = append(states, "predicted_failure")
	}
	for _, s := range states {
		k := "hw_status{" + id + `,hw_state="` + s + `",hw_type=` + kind + "}"
		m[k] = 0
		if s == state {
			m[k] = 1
		}
	}
	return m
}

// The sensors of testdata/hardware.conf, served by the real snmpd, in their units.
func TestHardware(t *testing.T) {
	d := startSnmpd(t)
	for _, auth := range []Auth{v2(), strong} {
		r, err := collect(t, newProbe(t, Config{Target: d.target("udp"), Auth: auth, Modules: []string{"entity_sensor", "ucd_lmsensors"}}))
		if err != nil {
			t.Fatal(err)
		}
		got := lines(r)
		maps.DeleteFunc(got, func(k string, _ float64) bool { return !strings.HasPrefix(k, "hw_") })
		want := map[string]float64{
			`hw_temperature_celsius{hw_id="entity/Inlet",hw_name="Inlet"}`:                                           23.5,
			`hw_fan_speed_rpm{hw_id="entity/Fan tray 1",hw_name="Fan tray 1"}`:                                       5400,
			`hw_voltage_volts{hw_id="entity/PSU 1 Vin",hw_name="PSU 1 Vin"}`:                                         230.1,
			`hw_current_amperes{hw_id="entity/Power supply output",hw_name="Power supply output"}`:                   1.25,
			`hw_power_watts{hw_id="entity/Power supply output",hw_name="Power supply output",hw_type="power_meter"}`: 450,
			`hw_temperature_celsius{hw_id="lmsensors/coretemp",hw_name="coretemp"}`:                                  45.5,
			`hw_temperature_celsius{hw_id="lmsensors/outdoor",hw_name="outdoor"}`:                                    -5.5,
			`hw_fan_speed_rpm{hw_id="lmsensors/fan-front",hw_name="fan-front"}`:                                      1180,
			`hw_fan_speed_rpm{hw_id="lmsensors/fan-rear",hw_name="fan-rear"}`:                                        0,
			`hw_voltage_volts{hw_id="lmsensors/+12V",hw_name="+12V"}`:                                                12.096,
		}
		for labels, state := range map[string]string{
			`hw_id="entity/Inlet",hw_name="Inlet" hw_type="temperature"`:                             "ok",
			`hw_id="entity/Fan tray 1",hw_name="Fan tray 1" hw_type="fan"`:                           "ok",
			`hw_id="entity/PSU 1 Vin",hw_name="PSU 1 Vin" hw_type="voltage"`:                         "ok",
			`hw_id="entity/Slot 3",hw_name="Slot 3" hw_type="temperature"`:                           "failed",
			`hw_id="entity/Power supply output",hw_name="Power supply output" hw_type="current"`:     "ok",
			`hw_id="entity/Power supply output",hw_name="Power supply output" hw_type="power_meter"`: "ok",
		} {
			maps.Copy(want, status(labels, state))
		}
		for _, sensor := range []string{`"lmsensors/coretemp",hw_name="coretemp",hw_type="temperature"`, `"lmsensors/outdoor",hw_name="outdoor",hw_type="temperature"`,
			`"lmsensors/fan-front",hw_name="fan-front",hw_type="fan"`, `"lmsensors/fan-rear",hw_name="fan-rear",hw_type="fan"`, `"lmsensors/+12V",hw_name="+12V",hw_type="voltage"`} {
			want["hw_component_info{hw_id="+sensor+"}"] = 1
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("v%d: (-want +got)\n%s", auth.version(), diff)
		}
	}
}

// The native series beside them have the device's raw values.
func TestSensorsAsTheDeviceGivesThem(t *testing.T) {
	d := startSnmpd(t)
	r, err := collect(t, newProbe(t, Config{Target: d.target("udp"), Auth: v2(), Modules: []string{"entity_sensor", "ucd_lmsensors"}}))
	if err != nil {
		t.Fatal(err)
	}
	got := lines(r)
	const psu = `{entPhysicalDescr="Power supply input",entPhysicalIndex="1003",entPhysicalName="PSU 1 Vin"}`
	for want, v := range map[string]float64{
		"entPhySensorType" + psu: 3, "entPhySensorScale" + psu: 8, "entPhySensorPrecision" + psu: 0,
		"entPhySensorValue" + psu: 230100, "entPhySensorOperStatus" + psu: 1,
		`lmTempSensorsValue{lmTempSensorsDevice="coretemp",lmTempSensorsIndex="1"}`:  45500,
		`lmTempSensorsValue{lmTempSensorsDevice="outdoor",lmTempSensorsIndex="2"}`:   -5500,
		`lmFanSensorsValue{lmFanSensorsDevice="fan-front",lmFanSensorsIndex="1"}`:    1180,
		`lmVoltSensorsValue{lmVoltSensorsDevice="+12V",lmVoltSensorsIndex="1"}`:      12096,
		`lmMiscSensorsValue{lmMiscSensorsDevice="intrusion",lmMiscSensorsIndex="1"}`: 1,
	} {
		if g, ok := got[want]; !ok || g != v {
			t.Errorf("%s = %v, %v, want %v", want, g, ok, v)
		}
	}
}

// Sensors that share a name are distinguished by their row; the ids of others have no row.
func TestSensorNames(t *testing.T) {
	var tree []gosnmp.SnmpPDU
	sensor := func(row, name string, status int) {
		tree = append(tree,
			pdu(entitySensorEntry+".1."+row, gosnmp.Integer, 8), pdu(entitySensorEntry+".2."+row, gosnmp.Integer, 9),
			pdu(entitySensorEntry+".3."+row, gosnmp.Integer, 0), pdu(entitySensorEntry+".4."+row, gosnmp.Integer, 20),
			pdu(entitySensorEntry+".5."+row, gosnmp.Integer, status), pdu(entPhysicalName+"."+row, gosnmp.OctetString, name))
	}
	sensor("1", "twin", 1)
	sensor("2", "twin", 1)
	sensor("3", "single\xff ", 1)
	sensor("4", "", 1)
	sensor("5", "away", sensorUnavailable)
	a := newFakeAgent(t, tree...)
	r, err := collect(t, newProbe(t, a.config("entity_sensor")))
	if err != nil {
		t.Fatal(err)
	}
	got := lines(r)
	maps.DeleteFunc(got, func(k string, _ float64) bool { return !strings.HasPrefix(k, "hw_temp") })
	want := map[string]float64{
		`hw_temperature_celsius{hw_id="entity/twin#1",hw_name="twin"}`:                                   20,
		`hw_temperature_celsius{hw_id="entity/twin#2",hw_name="twin"}`:                                   20,
		`hw_temperature_celsius{hw_id="entity/single` + "\uFFFD" + `",hw_name="single` + "\uFFFD" + `"}`: 20,
		`hw_temperature_celsius{hw_id="entity#4"}`:                                                       20,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A sensor that the device calls unavailable has the state unknown, as one whose status RFC 3433 does not have, and no value.
func TestUnavailableSensorIsUnknown(t *testing.T) {
	for _, code := range []int{sensorUnavailable, 7} {
		a := newFakeAgent(t,
			pdu(entitySensorEntry+".1.1", gosnmp.Integer, 8), pdu(entitySensorEntry+".4.1", gosnmp.Integer, 20),
			pdu(entitySensorEntry+".5.1", gosnmp.Integer, code), pdu(entPhysicalName+".1", gosnmp.OctetString, "away"))
		r, err := collect(t, newProbe(t, a.config("entity_sensor")))
		if err != nil {
			t.Fatal(err)
		}
		got := lines(r)
		maps.DeleteFunc(got, func(k string, _ float64) bool { return !strings.HasPrefix(k, "hw_") })
		if diff := cmp.Diff(status(`hw_id="entity/away",hw_name="away" hw_type="temperature"`, "unknown"), got); diff != "" {
			t.Errorf("status %d (-want +got)\n%s", code, diff)
		}
	}
}

func TestFixedPoint(t *testing.T) {
	for _, tc := range []struct {
		raw, scale, precision int64
		want                  float64
	}{
		{235, 9, 1, 23.5}, {230100, 8, 0, 230.1}, {45, 10, 2, 450}, {-127, 9, 1, -12.7},
		{12, 7, 0, 12e-6}, {1, 11, 0, 1e6},
		{5400, 9, -3, 5400},                                   // three reliable digits, not 10^3
		{7, 0, 0, 7e-24}, {7, 99, 0, 7e24}, {1, 9, 400, 1e-9}, // out of the MIB's range
	} {
		if got := fixedPoint(tc.raw, tc.scale, tc.precision); !cmp.Equal(got, tc.want, cmpopts.EquateApprox(1e-15, 0)) {
			t.Errorf("fixedPoint(%d, %d, %d) = %v, want %v", tc.raw, tc.scale, tc.precision, got, tc.want)
		}
	}
}

func TestHostDate(t *testing.T) {
	d := startSnmpd(t)
	r, err := collect(t, newProbe(t, Config{Target: d.target("udp"), Auth: v2(), Modules: []string{"host_resources"}}))
	if err != nil {
		t.Fatal(err)
	}
	got, ok := lines(r)["hrSystemDate{}"]
	if now := float64(time.Now().Unix()); !ok || math.Abs(got-now) > 5 {
		t.Errorf("hrSystemDate = %v, %v, but it is %v", got, ok, now)
	}
	storage, devices := 0, 0
	for k := range lines(r) {
		if strings.HasPrefix(k, "hrStorageSize{") && strings.Contains(k, `hrStorageDescr="/"`) && strings.Contains(k, `hrStorageType="1.3.6.1.2.1.25.2.1.4"`) {
			storage++
		}
		if strings.HasPrefix(k, "hrDeviceStatus{") && strings.Contains(k, `hrDeviceType="1.3.6.1.2.1.25.3.1.3"`) { // a processor
			devices++
		}
	}
	if storage != 1 || devices == 0 {
		t.Errorf("%d root file systems, %d processors", storage, devices)
	}
}
