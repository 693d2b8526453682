package redfish

import (
	"slices"
	"strconv"
	"strings"

	"hwsagent/probes/hw"
)

// sensorsOwners are kinds whose sensors also appear elsewhere, for example in a processor next to a fan.
var sensorsOwners = []hw.Kind{hw.Fan, hw.PowerSupply, hw.Battery, hw.CoolingDevice}

// readings adds the readings of sensors. If a component contains a sensor as its own (an excerpt with a DataSourceUri),
// it gets the sensor's reading, limits and health; other sensors become components. Summaries of a chassis only count
// if no sensor provides the value.
func (m *mapper) readings() {
	var summaries, others []*node
	for _, n := range m.tree.nodes {
		p := m.reportOf(n)
		if p == nil {
			continue
		}
		if n.role.attached && n.name != "entries" {
			m.values(n.owner(), n.object, p)
		}
		switch {
		case n.name == "entries":
			entries(n.object, p)
		case p.Kind == hw.Enclosure:
			m.consumption(n, p)
			summaries = append(summaries, n)
		case slices.Contains(sensorsOwners, p.Kind):
			m.excerpts(n, p)
		default:
			others = append(others, n)
		}
	}
	for _, n := range others {
		m.excerpts(n, m.reportOf(n))
	}
	for _, n := range m.tree.nodes {
		if n.name == "sensor" && !n.gone() && !absent(n.object) && !m.claimed[n.path] && !m.replaced(n) {
			m.sensor(n)
		}
	}
	for _, n := range summaries {
		m.excerpts(n, m.reportOf(n))
	}
	for _, n := range m.tree.nodes {
		if n.name == "leakGroup" && !n.gone() {
			m.leakGroup(n)
		}
	}
}

// reportOf returns the report of n, or of the component to which n is attached; nil if there is none.
func (m *mapper) reportOf(n *node) *hw.Report {
	if n.name == "sensor" || !n.role.part && !n.role.attached {
		return nil
	}
	return m.of[n.owner()]
}

// consumption adds the power and energy of a chassis; if the chassis is the whole machine, to the machine.
func (m *mapper) consumption(n *node, p *hw.Report) {
	for _, c := range [...]struct {
		property      string
		of, ofMachine hw.Metric
		scale         float64
	}{{"PowerWatts", hw.Power, hw.HostPower, 1}, {"EnergyJoules", hw.Energy, hw.HostEnergy, 1}, {"EnergykWh", hw.Energy, hw.HostEnergy, 3.6e6}} {
		o := n.object.sub(c.property)
		v, ok := o.number("Reading")
		if !ok {
			continue
		}
		key, has := sensorKey(o.text("DataSourceUri"))
		if has && m.claimed[key] {
			continue
		}
		if s := m.sensors[key]; s != nil {
			if own, ok := s.object.number("Reading"); ok {
				v = unitOf(s.object).value(own) / c.scale
			}
			p.Status = p.Status.Join(statusOf(s.object))
			m.limits(p, s.object, unitOf(s.object), c.of, nil)
		}
		done := false
		if m.host != nil && m.of[m.host] == p {
			done = addOnce(&m.machine, c.ofMachine, v*c.scale, hw.LabelQuality, hw.Measured)
		} else {
			done = addOnce(p, c.of, v*c.scale)
		}
		if has && done {
			m.claimed[key] = true
		}
	}
}

// sensor turns a sensor into a component unless another component contains it as its own.
func (m *mapper) sensor(n *node) {
	u := unitOf(n.object)
	kind := alone[u.of].kind
	if kind == hw.Fan && strings.EqualFold(n.object.text("PhysicalContext"), "Pump") {
		kind = hw.CoolingDevice
	}
	p := &hw.Report{Status: statusOf(n.object), Component: hw.Component{Kind: kind, ID: n.id(), Name: nameOf(n), Parent: m.parent(n)}}
	for _, related := range n.object.list("RelatedItem") {
		if path, ok := related.link(); ok && m.of[m.tree.byPath[path]] != nil {
			p.Parent = m.of[m.tree.byPath[path]].ID
			break
		}
	}
	if v, ok := n.object.number("Reading"); ok && !disabled(n.object) {
		m.measure(p, n.object, u, v)
	} else {
		m.limits(p, n.object, u, alone[u.of].limit, nil)
	}
	if rpm, ok := n.object.number("SpeedRPM"); ok {
		addSpeed(p, rpm, nil)
	}
	m.claimed[n.path] = true
	m.add(n, p)
}

// measure adds the reading and the limits of a sensor to its component.
func (m *mapper) measure(p *hw.Report, o object, u unit, v float64) {
	var attributes []string
	if u.of == other {
		attributes = []string{hw.SensorUnit, u.name}
	}
	if u.of == fanSpeed {
		addSpeed(p, u.value(v), attributes)
	} else {
		addOnce(p, alone[u.of].now, u.value(v), attributes...)
	}
	m.limits(p, o, u, alone[u.of].limit, attributes)
}

// thresholds are the properties for each kind of limit in the schema Sensor and in the older Thermal and Power; the
// first existing one counts.
var thresholds = [...]struct {
	limit string
	paths [4]string
}{
	{"low.critical", [...]string{"Thresholds.LowerCritical.Reading", "Thresholds.LowerFatal.Reading", "LowerThresholdCritical", "LowerThresholdFatal"}},
	{"low.degraded", [...]string{"Thresholds.LowerCaution.Reading", "Thresholds.LowerCautionUser.Reading", "LowerThresholdNonCritical", ""}},
	{"high.degraded", [...]string{"Thresholds.UpperCaution.Reading", "Thresholds.UpperCautionUser.Reading", "UpperThresholdNonCritical", ""}},
	{"high.critical", [...]string{"Thresholds.UpperCritical.Reading", "Thresholds.UpperFatal.Reading", "UpperThresholdCritical", "UpperThresholdFatal"}},
}

// limits adds the limits of a sensor, except those that are clearly unset: all of them 0, and temperatures beyond 1000
// °C.
func (m *mapper) limits(p *hw.Report, o object, u unit, metric hw.Metric, attributes []string) {
	if metric == hw.Info {
		return
	}
	var found [len(thresholds)]float64
	var there [len(thresholds)]bool
	set := false
	for i := range thresholds {
		for _, path := range thresholds[i].paths {
			if v, ok := o.number(path); ok && path != "" && !there[i] {
				found[i], there[i] = u.value(v), true
				set = set || v != 0
			}
		}
	}
	for i := range thresholds {
		if !there[i] || !set || u.of == temperature && found[i] > 1000 {
			continue
		}
		addOnce(p, metric, found[i], append(slices.Clone(attributes), hw.LabelLimitType, thresholds[i].limit)...)
	}
}

// oldSensor adds the reading of a part of the older resources Thermal and Power.
func (m *mapper) oldSensor(n *node, p *hw.Report) {
	o := n.object
	u, paths := byUnits["cel"], []string{"ReadingCelsius"}
	switch n.name {
	case "oldVoltage":
		u, paths = byUnits["v"], []string{"ReadingVolts"}
	case "oldFan":
		u, paths = byUnits["rpm"], []string{"Reading", "CurrentReading", "ReadingRPM"}
		if strings.HasPrefix(strings.ToLower(o.first("ReadingUnits", "Units")), "percent") || o.first("ReadingUnits", "Units") == "%" {
			u = unit{of: fanRatio, scale: 0.01}
		}
	}
	for _, path := range paths {
		if path == "ReadingRPM" {
			u = byUnits["rpm"]
		}
		if v, ok := o.number(path); ok && !disabled(o) {
			m.measure(p, o, u, v)
			return
		}
	}
	m.limits(p, o, u, alone[u.of].limit, nil)
}

// leakGroup adds the detectors of a group that were not read as resources.
func (m *mapper) leakGroup(n *node) {
	for i, d := range n.object.list("Detectors") {
		key, ok := sensorKey(d.text("DataSourceUri"))
		if !ok {
			key = n.path + "/Detectors/" + strconv.Itoa(i)
		}
		if m.claimed[key] || m.of[m.tree.byPath[key]] != nil || d.text("DetectorState") == "" {
			continue
		}
		m.claimed[key] = true
		p := &hw.Report{Status: healthOf(d.text("DetectorState")), Component: hw.Component{Kind: hw.LeakDetector, ID: pathID(key), Name: d.text("DeviceName"), Parent: m.parent(n)}}
		m.add(nil, p)
	}
}
