package snmp

import (
	"math"
	"strings"

	"hwsagent/probes/hw"
)

// quantity is the kind of value that a sensor measures.
type quantity struct {
	kind   hw.Kind
	metric hw.Metric
	factor float64 // to the metric's unit; 0 means 1
	unit   string  // of a quantity without a metric of its own
}

var (
	temperature = quantity{kind: hw.Temperature, metric: hw.TemperatureNow}
	fanSpeed    = quantity{kind: hw.Fan, metric: hw.FanSpeed}
	voltage     = quantity{kind: hw.Voltage, metric: hw.VoltageNow}
	current     = quantity{kind: hw.Current, metric: hw.CurrentNow}
	power       = quantity{kind: hw.PowerMeter, metric: hw.Power}
	frequency   = quantity{kind: hw.Frequency, metric: hw.FrequencyNow}
	humidity    = quantity{kind: hw.Humidity, metric: hw.HumidityNow, factor: 0.01}
	airflow     = quantity{kind: hw.Sensor, metric: hw.SensorValue, unit: "m3/min"}
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

// sensor is one reading for the vocabulary of package hw.
type sensor struct {
	quantity
	arc      uint32 // its row
	name     string // for people
	value    float64
	hasValue bool
	state    hw.Status // zero if the source reports no states
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
			s.state = hw.OK
			scale, ok := cell(2, row)
			if !ok {
				scale = 9 // units
			}
			precision, _ := cell(3, row)
			if raw, ok := cell(4, row); ok {
				s.value, s.hasValue = fixedPoint(raw, scale, precision), true
			}
		case sensorNonoperational:
			s.state = hw.Failed
		default: // sensorUnavailable, or a number not in RFC 3433
			s.state = hw.Unknown
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
	type key struct {
		kind hw.Kind
		name string
	}
	named := make(map[key]int)
	for _, s := range sensors {
		named[key{s.kind, s.name}]++
	}
	for _, s := range sensors {
		p := hw.Report{Status: s.state, Component: hw.Component{Kind: s.kind, ID: source + "/" + s.name, Name: s.name}}
		if s.name == "" || named[key{s.kind, s.name}] > 1 {
			p.ID = strings.TrimSuffix(p.ID, "/") + "#" + oid{s.arc}.String()
		}
		if s.hasValue {
			v := s.value
			if s.factor != 0 {
				v *= s.factor
			}
			if s.unit == "" {
				p.Add(s.metric, v)
			} else {
				p.Add(s.metric, v, hw.SensorUnit, s.unit)
			}
		}
		p.AddTo(e.round)
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
