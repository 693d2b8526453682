package snmp

import (
	"math"
	"strings"
)

// Series of the OpenTelemetry hardware conventions (status: development, as of their
// version 1.44), and a few similar ones that the conventions lack.

// quantity is the kind of value that a sensor measures: the series of its values, and the
// hw_type of its state.
type quantity struct {
	series, hwType, help string
	factor               float64 // to the series' unit; 0 means 1
}

var (
	temperature = quantity{series: "hw_temperature_celsius", hwType: "temperature", help: "Temperature in degrees Celsius."}
	fanSpeed    = quantity{series: "hw_fan_speed_rpm", hwType: "fan", help: "Fan speed in revolutions per minute."}
	voltage     = quantity{series: "hw_voltage_volts", hwType: "voltage", help: "Voltage in volts."}
	current     = quantity{series: "hw_current_amperes", hwType: "current", help: "Electric current in amperes."}
	power       = quantity{series: "hw_power_watts", hwType: "power", help: "Power in watts."}
	frequency   = quantity{series: "hw_frequency_hertz", hwType: "frequency", help: "Frequency in hertz."}
	humidity    = quantity{series: "hw_humidity_ratio", hwType: "humidity", help: "Relative humidity from 0 to 1.", factor: 0.01}
	airflow     = quantity{series: "hw_airflow_cubic_meters_per_minute", hwType: "airflow", help: "Air flow in cubic metres per minute."}
)

// entityQuantities maps the values of EntitySensorDataType (RFC 3433) that have a unit.
var entityQuantities = map[int64]quantity{
	3: voltage, 4: voltage, 5: current, 6: power, 7: frequency, 8: temperature, 9: humidity, 10: fanSpeed, 11: airflow,
}

// Values of EntitySensorStatus (RFC 3433).
const (
	sensorOK             = 1
	sensorUnavailable    = 2 // the device has no value of the sensor now
	sensorNonoperational = 3
)

// states returns the states of hw_status that the quantity can have, as in package hw: one series each, 1 for the current state.
func (q *quantity) states() []string {
	if q.hwType == "fan" {
		return []string{"degraded", "failed", "ok", "predicted_failure", "unknown"}
	}
	return []string{"degraded", "failed", "ok", "unknown"}
}

// sensor is one reading for the hw_ series.
type sensor struct {
	quantity
	arc      uint32 // its row
	name     string // for people
	value    float64
	hasValue bool
	state    string // one of the quantity's states, or "" if the source reports no states
}

// deriveEntitySensors converts each sensor's value to its unit: every row has its own scale
// and precision.
func deriveEntitySensors(h *harvest, e *emitter) {
	entry := mustOID(entitySensorEntry)
	cell := func(column, row uint32) (int64, bool) {
		return h.integer(append(entry[:len(entry):len(entry)], column, row))
	}
	var sensors []sensor
	for _, row := range h.rows(append(entry[:len(entry):len(entry)], 1)) {
		kind, _ := cell(1, row)
		q, ok := entityQuantities[kind]
		if !ok {
			continue
		}
		s := sensor{quantity: q, arc: row, name: h.name(row, entPhysicalName, entPhysicalDescr)}
		status, ok := cell(5, row)
		if !ok {
			status = sensorOK
		}
		switch status {
		case sensorOK:
			s.state = "ok"
			scale, ok := cell(2, row)
			if !ok {
				scale = 9 // units
			}
			precision, _ := cell(3, row)
			if raw, ok := cell(4, row); ok {
				s.value, s.hasValue = fixedPoint(raw, scale, precision), true
			}
		case sensorNonoperational:
			s.state = "failed"
		default: // sensorUnavailable, or a number not in RFC 3433
			s.state = "unknown"
		}
		sensors = append(sensors, s)
	}
	e.hardware("entity", sensors)
}

// fixedPoint converts raw to units, by RFC 3433: the scale is a power of 1000 with 9 for 1, and
// a positive precision is a number of decimal places. A negative one counts significant digits.
func fixedPoint(raw, scale, precision int64) float64 {
	exp := 3 * (min(max(scale, 1), 17) - 9)
	if precision > 0 {
		exp -= min(precision, 9)
	}
	if exp < 0 { // division rounds once: 235 / 10 is 23.5
		return float64(raw) / math.Pow10(int(-exp))
	}
	return float64(raw) * math.Pow10(int(exp))
}

// deriveLMSensors converts temperatures, fan speeds and voltages to their units. The table has no
// states.
func deriveLMSensors(h *harvest, e *emitter) {
	for _, t := range []struct {
		entry   string
		q       quantity
		typ     metricType
		divisor float64
	}{
		{lmTemp, temperature, typeInteger32, 1000},
		{lmFan, fanSpeed, typeGauge, 1},
		{lmVolt, voltage, typeInteger32, 1000},
	} {
		values := append(mustOID(t.entry), 3)
		var sensors []sensor
		for _, row := range h.rows(values) {
			v := h.lookup(append(values[:len(values):len(values)], row))
			n, ok := v.number(t.typ)
			sensors = append(sensors, sensor{
				quantity: t.q, arc: row, name: h.name(row, t.entry+".2"), value: n / t.divisor, hasValue: ok,
			})
		}
		e.hardware("lmsensors", sensors)
	}
}

// hardware adds the sensors of one source. hw_id has to survive a restart of the device, which may
// renumber rows, so it is made of the name; only sensors that share a name also get their row's
// number.
func (e *emitter) hardware(source string, sensors []sensor) {
	named := make(map[string]int)
	for _, s := range sensors {
		named[s.series+"\xff"+s.name]++
	}
	for _, s := range sensors {
		id, name := source+"/"+s.name, s.name
		if name == "" || named[s.series+"\xff"+name] > 1 {
			id = strings.TrimSuffix(id, "/") + "#" + oid{s.arc}.String()
		}
		if s.hasValue {
			v := s.value
			if s.factor != 0 {
				v *= s.factor
			}
			e.gauge(s.series, s.help, v, "hw_id", id, "hw_name", name)
		}
		if s.state == "" {
			continue
		}
		for _, state := range s.states() {
			v := 0.0
			if state == s.state {
				v = 1
			}
			e.gauge("hw_status", "State of the component: 1 for the state that it is in, 0 for the others.", v,
				"hw_id", id, "hw_name", name, "hw_state", state, "hw_type", s.hwType)
		}
	}
}

// lookup returns the variable at o, or nil.
func (h *harvest) lookup(o oid) *variable {
	if i, ok := h.place(o); ok {
		return &h.vars[i]
	}
	return nil
}

func (h *harvest) integer(o oid) (int64, bool) {
	if v := h.lookup(o); v != nil {
		return v.integer()
	}
	return 0, false
}

// rows returns the indexes of a column whose index is one number.
func (h *harvest) rows(column oid) (rows []uint32) {
	for i := range h.vars {
		if o := h.vars[i].oid; len(o) == len(column)+1 && o.hasPrefix(column) {
			if !h.counts(i) {
				continue // a later variable has the same OID
			}
			rows = append(rows, o[len(column)])
		}
	}
	return rows
}

// name returns the first text in the row of any of the columns.
func (h *harvest) name(row uint32, columns ...string) string {
	for _, c := range columns {
		if v := h.lookup(append(mustOID(c), row)); v != nil {
			if s := strings.TrimSpace(v.text(typeDisplayString)); s != "" {
				return s
			}
		}
	}
	return ""
}
