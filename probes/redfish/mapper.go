package redfish

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"hwsagent/probes/hw"
)

// mapper turns a tree into reports.
type mapper struct {
	tree    *tree
	has     map[*node]map[quantity]bool // quantities that a chassis reports by the newer schemas
	newer   map[*node][]*node           // resources of the newer schemas that have a reading, by chassis
	older   map[*node][]*node           // rows of the older schemas that have a reading, by chassis
	sensors map[string]*node            // sensors read, by sensorKey
	claimed map[string]bool             // sensors whose readings are in a report, by sensorKey
	of      map[*node]*hw.Report        // of components
	all     []*hw.Report
	ids     map[string]bool // used IDs, with their kinds
	disks   map[string]*node
	host    *node // the chassis that is the whole machine; nil if none is
	machine hw.Report
}

// reports returns the reports of a tree, with each reading and each health once. If one chassis is the whole machine,
// the last report is that of the machine. It does not change the tree.
func reports(t *tree) []hw.Report {
	m := &mapper{tree: t, has: make(map[*node]map[quantity]bool), newer: make(map[*node][]*node), older: make(map[*node][]*node), sensors: make(map[string]*node), claimed: make(map[string]bool),
		of: make(map[*node]*hw.Report), ids: make(map[string]bool), disks: make(map[string]*node), host: wholeMachine(t)}
	m.machine.Kind = hw.Host
	for _, n := range t.nodes {
		if c := n.chassis(); c != nil {
			if m.has[c] == nil {
				m.has[c] = make(map[quantity]bool)
			}
			tells(n, m.has[c])
			m.sort(n, c)
		}
		if n.name == "sensor" {
			m.sensors[n.path] = n
		}
	}
	for _, n := range t.nodes {
		if n.role.part && !n.gone() && !m.hidden(n) {
			m.component(n)
		}
	}
	m.readings()
	out := make([]hw.Report, 0, len(m.all)+1)
	for _, p := range m.all {
		out = append(out, *p)
	}
	if m.host != nil {
		m.machine.Facts = m.identity()
		out = append(out, m.machine)
	}
	return out
}

// identity returns the serial number and UUID of the machine, as its operating system also knows them: those of the
// only computer in the chassis, or else of the chassis.
func (m *mapper) identity() []string {
	var of object
	computers := m.host.object.list("Links.ComputerSystems")
	if len(computers) == 1 {
		if path, ok := computers[0].link(); ok && m.tree.byPath[path] != nil {
			of = m.tree.byPath[path].object
		}
	}
	out := []string{hw.Serial, of.text("SerialNumber"), hw.UUID, of.text("UUID")}
	for i, key := range []string{"SerialNumber", "UUID"} {
		if out[2*i+1] == "" && len(computers) < 2 {
			out[2*i+1] = m.host.object.text(key)
		}
	}
	return out
}

// wholeMachine returns the only chassis that is not inside another, or of several the one that contains a computer.
func wholeMachine(t *tree) *node {
	var roots, computers []*node
	for _, n := range t.nodes {
		if n.name != "chassis" || absent(n.object) {
			continue
		}
		if path, ok := n.object.sub("Links.ContainedBy").link(); ok && t.byPath[path] != nil && path != n.path {
			continue
		}
		roots = append(roots, n)
		if len(n.object.list("Links.ComputerSystems")) > 0 {
			computers = append(computers, n)
		}
	}
	switch {
	case len(roots) == 1:
		return roots[0]
	case len(computers) == 1:
		return computers[0]
	}
	return nil
}

// component adds the report of a component, without the readings of sensors.
func (m *mapper) component(n *node) {
	o := n.object
	p := &hw.Report{Status: statusOf(o), Component: hw.Component{Kind: kindOf(n), Name: nameOf(n), Parent: m.parent(n), Facts: facts(n)}}
	if p.ID = m.diskID(n); p.ID == "" {
		if first := m.disks[n.path]; first != nil { // the same disk, found in another collection: the worse health counts
			m.of[first].Status = m.of[first].Status.Join(predicted(o, p.Status))
			m.values(first, o, m.of[first])
			return
		}
		p.ID = n.id()
	}
	switch n.name {
	case "drive":
		p.Status = predicted(o, p.Status)
	case "leakDetector":
		p.Status = leakState(o, p.Status)
	case "device", "coolingLoop", "outlet":
		p.Status = conditionOf(o, p.Status)
	case "memory":
		p.Status = p.Status.Join(healthOf(o.text("DIMMStatus")))
	}
	m.add(n, p)
	m.values(n, o, p)
	m.special(n, p)
	for i := range p.Readings {
		if r := &p.Readings[i]; moving(r.Metric) {
			r.At = n.at
		}
	}
}

// add adds a report; n is nil if the report has no resource of its own.
func (m *mapper) add(n *node, p *hw.Report) {
	id := p.ID
	for i := 2; m.ids[p.Kind.String()+" "+p.ID]; i++ {
		p.ID = id + "#" + strconv.Itoa(i)
	}
	m.ids[p.Kind.String()+" "+p.ID] = true
	m.all = append(m.all, p)
	if n != nil {
		m.of[n] = p
	}
}

// parent returns the ID of the component that n is a part of.
func (m *mapper) parent(n *node) string {
	if n.name == "chassis" {
		if path, ok := n.object.sub("Links.ContainedBy").link(); ok && path != n.path && m.tree.byPath[path] != nil {
			return m.tree.byPath[path].id()
		}
	}
	if p := m.above(n); p != nil {
		return p.ID
	}
	return ""
}

// above returns the report of the nearest component above n.
func (m *mapper) above(n *node) *hw.Report {
	for up := n.parent; up != nil; up = up.parent {
		if p := m.of[up]; p != nil {
			return p
		}
	}
	return nil
}

// diskID returns the ID of a disk in the form of the probes host and smart, "" for anything else. A disk in two
// collections has one report; two disks in one collection with the same serial number keep their paths.
func (m *mapper) diskID(n *node) string {
	if n.name != "drive" {
		return ""
	}
	wwn := ""
	for _, i := range n.object.list("Identifiers") {
		if f := i.text("DurableNameFormat"); strings.EqualFold(f, "NAA") && !strings.EqualFold(n.object.text("Protocol"), "NVMe") {
			wwn = i.text("DurableName")
		}
	}
	id := hw.DiskID(wwn, n.object.text("Model"), n.object.text("SerialNumber"))
	if id == "" {
		return ""
	}
	first := m.disks[id]
	if first == nil {
		m.disks[id] = n
		return id
	}
	if collection(first.path) != collection(n.path) && !n.inline && m.of[first] != nil {
		m.disks[n.path] = first
	}
	return ""
}

func collection(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

func kindOf(n *node) hw.Kind {
	if n.name != "processor" {
		return n.role.kind
	}
	switch typ := n.object.text("ProcessorType"); strings.ToUpper(typ) {
	case "", "CPU":
		return hw.CPU
	case "GPU":
		return hw.GPU
	}
	return hw.OtherDevice
}

func nameOf(n *node) string {
	name := n.object.first("Name", "FanName", "DeviceName", "DeviceLocator", "Id")
	if n.name == "processorPort" && name != "" { // each processor has ports of the same names
		return nameOf(n.parent) + " " + name
	}
	if s := n.object.text("Id"); n.name == "processor" && strings.EqualFold(name, "Processor") && s != "" {
		return s
	}
	if name != "" {
		return name
	}
	last := n.id()[strings.LastIndexByte(n.id(), '/')+1:]
	if n.inline { // include the name of the property
		return label(strings.ReplaceAll(strings.TrimPrefix(n.path, n.parent.path+"/"), "/", " "))
	}
	return last
}

// facts returns the labels of a resource for hw_component_info.
func facts(n *node) []string {
	o := n.object
	var out []string
	for _, f := range []struct{ label, value string }{
		{hw.Vendor, o.text("Manufacturer")}, {hw.Model, o.text("Model")}, {hw.Serial, o.text("SerialNumber")}, {hw.UUID, o.text("UUID")},
		{hw.Firmware, o.first("FirmwareVersion", "FirmwareRevision", "Revision", "FirmwarePackageVersion")}, {hw.BIOS, o.text("BiosVersion")},
		{hw.EnclosureType, o.text("ChassisType")}, {hw.MemoryType, o.text("MemoryDeviceType")}, {hw.PhysicalAddress, macAddress(o)},
	} {
		switch {
		case f.label == hw.Firmware && n.name == "firmware":
			f.value = o.text("Version")
		case f.label == hw.Firmware && f.value == "" && n.name == "adapter":
			if c := o.list("Controllers"); len(c) > 0 {
				f.value = c[0].text("FirmwarePackageVersion")
			}
		}
		if f.value != "" {
			out = append(out, f.label, f.value)
		}
	}
	if n.name == "drive" {
		if kind := diskType(o); kind != "" {
			out = append(out, hw.DiskType, kind)
		}
	}
	return out
}

func macAddress(o object) string {
	if s := o.first("MACAddress", "PermanentMACAddress", "MacAddress"); s != "" {
		return strings.ToLower(s)
	}
	for _, path := range [...]string{"Ethernet.AssociatedMACAddresses", "AssociatedNetworkAddresses"} {
		if all, _ := o.at(path).([]any); len(all) > 0 {
			if s, ok := all[0].(string); ok {
				return strings.ToLower(label(s))
			}
		}
	}
	return ""
}

func diskType(o object) string {
	if strings.Contains(strings.ToLower(o.first("Protocol", "InterfaceType")), "nvme") {
		return "nvme"
	}
	switch kind := strings.ToLower(o.text("MediaType")); kind {
	case "hdd", "ssd":
		return kind
	}
	return ""
}

// addOnce adds a reading if the kind may have it and the report does not have it yet.
func addOnce(p *hw.Report, metric hw.Metric, v float64, attributes ...string) bool {
	if !metric.Allows(p.Kind, attributes) || slices.ContainsFunc(p.Readings, func(r hw.Reading) bool {
		return r.Metric == metric && slices.Equal(r.Attributes, attributes)
	}) {
		return false
	}
	p.Add(metric, v, attributes...)
	return true
}

// byLength orders keys such that a plain name comes before its compounds.
func byLength(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
