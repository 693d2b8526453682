package redfish

import (
	"slices"
	"strings"
	"unicode"
)

// quantityOf returns the quantity of a row of the older schemas, or of a resource of the newer ones; ok is false for any other node.
func quantityOf(n *node) (q quantity, older, ok bool) {
	switch n.name {
	case "oldTemperature":
		return temperature, true, true
	case "oldFan":
		return fanSpeed, true, true
	case "oldVoltage":
		return voltage, true, true
	case "oldSupply":
		return supply, true, true
	case "fan":
		return fanSpeed, false, true
	case "supply":
		return supply, false, true
	case "sensor":
		if q = unitOf(n.object).of; q == fanRatio {
			q = fanSpeed
		}
		return q, false, true
	}
	return other, false, false
}

// sort notes a row or a resource that has a reading, in its chassis.
func (m *mapper) sort(n, chassis *node) {
	_, older, ok := quantityOf(n)
	switch {
	case !ok || n.gone() || absent(n.object):
	case older:
		if n.name != "oldTemperature" && n.name != "oldVoltage" || reads(n.object, "ReadingCelsius", "ReadingVolts") {
			m.older[chassis] = append(m.older[chassis], n)
		}
	case n.name != "sensor" || reads(n.object, "Reading"):
		m.newer[chassis] = append(m.newer[chassis], n)
	}
}

func reads(o object, properties ...string) bool {
	return slices.ContainsFunc(properties, func(p string) bool { _, ok := o.number(p); return ok })
}

// hidden reports whether the newer schemas also contain n: a resource with a reading of the same quantity, with its number or its name. Of
// fans and supplies, whose names differ more, it is also enough that there are as many.
func (m *mapper) hidden(n *node) bool {
	chassis := n.chassis()
	has := m.has[chassis]
	switch n.name {
	case "oldTemperature", "oldVoltage":
		return m.twin(n, m.newer[chassis]) != nil
	case "oldFan", "oldSupply":
		q, _, _ := quantityOf(n)
		return m.twin(n, m.newer[chassis]) != nil || has[q] && count(m.newer[chassis], q) >= count(m.older[chassis], q)
	case "oldPower":
		return has[power]
	case "redundancy":
		return statusOf(n.object) == 0 || n.parent.name == "thermal" && has[fanSpeed] || n.parent.name == "power" && has[supply]
	case "smartController", "volume":
		return m.hasNewDrives() && n.below("smartStorage")
	}
	return false
}

// replaced reports whether a sensor without a reading is a row of the older schemas that has one.
func (m *mapper) replaced(n *node) bool {
	return !reads(n.object, "Reading") && m.twin(n, m.older[n.chassis()]) != nil
}

// twin returns the node that describes the same part as n in the other schemas, nil if there is none.
func (m *mapper) twin(n *node, others []*node) *node {
	q, _, _ := quantityOf(n)
	number, hasNumber := n.object.number("SensorNumber")
	name := partName(n.object)
	for _, o := range others {
		if of, _, _ := quantityOf(o); of != q {
			continue
		}
		if x, ok := o.object.number("SensorNumber"); ok && hasNumber && x == number && number > 0 {
			return o
		}
		if name != "" && (name == partName(o.object) || name == partWords(o.object.text("Id"))) {
			return o
		}
	}
	return nil
}

func count(nodes []*node, q quantity) (n int) {
	for _, x := range nodes {
		if of, _, _ := quantityOf(x); of == q {
			n++
		}
	}
	return n
}

// partName returns the words of a part's name that tell it apart.
func partName(o object) string { return partWords(o.first("Name", "FanName", "DeviceName", "Id")) }

// partWords returns the words of a name without those for what is measured, which one schema adds and another leaves out.
func partWords(name string) string {
	all := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(slices.DeleteFunc(all, func(w string) bool {
		switch w {
		case "temp", "temperature", "voltage", "volt", "sensor", "reading", "speed", "status":
			return true
		}
		return false
	}), " ")
}

// below reports whether n is reached through a resource of that role.
func (n *node) below(role string) bool {
	for ; n != nil; n = n.parent {
		if n.name == role {
			return true
		}
	}
	return false
}

// hasNewDrives reports whether the standard schemas have a drive: those of HPE's own schemas then only add to them.
func (m *mapper) hasNewDrives() bool {
	return slices.ContainsFunc(m.tree.nodes, func(n *node) bool { return n.name == "drive" && !n.below("smartStorage") })
}
