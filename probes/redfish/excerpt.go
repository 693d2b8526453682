package redfish

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"hwsagent/probes/hw"
)

const maxNesting = 6 // depth of properties that are searched for excerpts of sensors

// excerpt is a copy of a sensor's reading within another resource.
type excerpt struct {
	object
	unit     unit
	property string // its name contains the unit
	before   string // the property without its unit
	place    string // path below the property; "" for the property itself
	path     string // path below the resource
}

// excerpts adds the sensor readings that n contains to p.
func (m *mapper) excerpts(n *node, p *hw.Report) {
	chassis := p.Kind == hw.Enclosure
	each(n, func(e excerpt) {
		v, ok := e.number("Reading")
		key, has := sensorKey(e.text("DataSourceUri"))
		switch {
		case !ok, has && m.claimed[key], chassis && slices.Contains([]string{"PowerWatts", "EnergykWh", "EnergyJoules"}, e.path):
			return
		case chassis && !has && e.unit.of == fanRatio && m.has[n.chassis()][fanSpeed]: // a copy of a fan's reading, without naming the fan
			return
		case n.inline && n.name != "leakGroup": // parts of the older schemas
			return
		case strings.HasSuffix(e.before, "Limit"): // the number is a limit that somebody set, no measurement
			return
		case disabled(n.object):
			return
		}
		u := e.unit
		s := m.sensors[key]
		if !has {
			key = n.path + "/" + strings.ReplaceAll(e.path, ".", "/")
		}
		m.claimed[key] = true
		source := e.object
		if s != nil && s.gone() {
			s = nil
		}
		if s != nil {
			own := unitOf(s.object)
			x, ok := s.object.number("Reading")
			switch {
			case ok && own.of == u.of && own.of != other:
				v, u = x, own
			case ok && (own.name == u.name || own.percent() && u.percent()):
				v = x
			}
			source = s.object
		}
		m.give(p, &e, key, u, v, source, s != nil)
	})
}

// give adds a reading to p, or as a separate component below p if p's kind has no place for it.
func (m *mapper) give(p *hw.Report, e *excerpt, key string, u unit, v float64, source object, known bool) {
	metric, scale, attributes, direct := place(p.Kind, e)
	if direct && addOnce(p, metric, u.value(v)*scale, attributes...) {
		if known {
			p.Status = p.Status.Join(statusOf(source))
			m.limits(p, source, u, alone[u.of].limit, attributes)
		}
	} else {
		child := &hw.Report{Component: hw.Component{Kind: alone[u.of].kind, ID: pathID(key), Parent: p.ID, Name: source.first("Name", "DeviceName")}}
		if child.Name == "" {
			child.Name = label(p.Name + " " + e.path)
		}
		if known {
			child.Status = statusOf(source)
		}
		m.measure(child, source, u, v)
		m.add(nil, child)
		p, attributes = child, nil
	}
	if known && u.of != fanSpeed && unitOf(source).of == fanSpeed { // the excerpt is a percentage of the sensor's speed
		if rpm, ok := source.number("Reading"); ok {
			addSpeed(p, rpm, attributes)
		}
	}
	for _, o := range [...]object{source, e.object} {
		if rpm, ok := o.number("SpeedRPM"); ok {
			addSpeed(p, rpm, attributes)
		}
	}
}

// addSpeed adds revolutions per minute to a fan or a pump. attributes say which of a fan's two rotors turns.
func addSpeed(p *hw.Report, rpm float64, attributes []string) {
	if p.Kind == hw.CoolingDevice {
		addOnce(p, hw.CoolingSpeed, rpm)
		return
	}
	addOnce(p, hw.FanSpeed, rpm, attributes...)
}

// place returns the metric and attributes of a reading for a component of that kind. scale is in addition to that of
// the unit.
func place(k hw.Kind, e *excerpt) (metric hw.Metric, scale float64, attributes []string, ok bool) {
	before := e.before
	for _, word := range [...]string{"PolyPhase", "Temperature", "Readings", "Summary"} {
		before = strings.TrimPrefix(before, word)
	}
	location := words(before, e.place)
	if location != "" {
		attributes = []string{hw.LabelLocation, location}
	}
	switch {
	case e.unit.of == temperature, e.unit.of == voltage, e.unit.of == current:
		return alone[e.unit.of].now, 1, attributes, true
	case e.place != "":
	case e.unit.of == power && k == hw.PowerSupply && e.before == "Output":
		return hw.PowerSupplyUsage, 1, nil, true
	case e.unit.of == power && (e.before == "" || e.before == "Input"):
		return hw.Power, 1, nil, true
	case e.unit.of == energy && e.before == "":
		return hw.Energy, 1, nil, true
	case k == hw.Fan && e.property == "SpeedPercent":
		return hw.FanSpeedRatio, 0.01, nil, true
	case k == hw.Fan && e.property == "SecondarySpeedPercent":
		return hw.FanSpeedRatio, 0.01, secondRotor, true
	case k == hw.CoolingDevice && (e.property == "PumpSpeedPercent" || e.property == "SpeedPercent"):
		return hw.CoolingRatio, 0.01, nil, true
	case k == hw.Battery && e.property == "ChargePercent":
		return hw.BatteryCharge, 0.01, nil, true
	case k == hw.Battery && e.property == "StateOfHealthPercent":
		return hw.BatteryHealth, 0.01, nil, true
	}
	return 0, 0, nil, false
}

// words splits names in mixed case, and returns the parts in lower case joined by underscores.
func words(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		low := false
		for i, r := range name {
			switch {
			case r >= 'A' && r <= 'Z':
				if low || i == 0 && b.Len() > 0 {
					b.WriteByte('_')
				}
				b.WriteRune(r - 'A' + 'a')
				low = false
			case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				if i == 0 && b.Len() > 0 {
					b.WriteByte('_')
				}
				b.WriteRune(r)
				low = true
			default:
				b.WriteByte('_')
				low = false
			}
		}
	}
	return label(b.String())
}

// each calls f for each excerpt in a resource: an object with a Reading, in a property whose name ends with a unit.
func each(n *node, f func(excerpt)) {
	skip := map[string]bool{"Oem": true, "Links": true, "Actions": true, "Status": true}
	for i := range n.role.follow {
		skip[n.role.follow[i].property] = true
	}
	var visit func(o object, e excerpt, depth int)
	visit = func(o object, e excerpt, depth int) {
		for _, key := range slices.SortedFunc(maps.Keys(o), byLength) {
			if skip[key] && depth == 0 || strings.HasPrefix(key, "@") || key == "Oem" {
				continue
			}
			e := e
			if e.unit.scale == 0 {
				u, before, ok := unitOfProperty(key)
				if ok {
					e.unit, e.property, e.before = u, key, before
				}
			} else {
				e.place = join(e.place, key)
			}
			e.path = join(e.path, key)
			items, isList := o[key].([]any)
			if !isList {
				items = []any{o[key]}
			}
			for i, v := range items {
				inner, ok := v.(map[string]any)
				if !ok || inner["@odata.id"] != nil {
					continue
				}
				e := e
				e.object = inner
				if isList {
					e.path = join(e.path, strconv.Itoa(i))
					e.place = join(e.place, strconv.Itoa(i))
				}
				if _, is := inner["Reading"]; is && e.unit.scale != 0 {
					f(e)
				} else if depth < maxNesting {
					visit(inner, e, depth+1)
				}
			}
		}
	}
	visit(n.object, excerpt{}, 0)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
