package hw

import (
	"math"

	"hwsagent/probes"
)

// Component identifies a piece of hardware.
type Component struct {
	Kind Kind

	// ID distinguishes the component from all others of its kind on the same instance. It survives reboots and changes
	// in the order in which a kernel or controller numbers its devices.
	ID string

	// Name is the name for people, such as the kernel's; it may change. Parent is the ID of the component that contains
	// it. Both may be "".
	Name, Parent string

	// Facts are the labels of hw_component_info beside those above: name, value, name, value, …; the names are the
	// constants Vendor, Model, …. Empty values are left out, and so are placeholders for serial numbers and UUIDs. For
	// the whole machine only serial number and UUID become labels, on each of its metrics.
	Facts []string
}

// Labels of hw_component_info, from the conventions' attributes of components. UUID, DriverName and Device are the
// project's own.
const (
	Vendor          = "hw_vendor"
	Model           = "hw_model"
	Serial          = "hw_serial_number" // the same from each source; joins use it and UUID
	UUID            = "hw_uuid"
	Firmware        = "hw_firmware_version"
	Driver          = "hw_driver_version"
	BIOS            = "hw_bios_version"
	Chemistry       = "hw_battery_chemistry"
	EnclosureType   = "hw_enclosure_type"
	MemoryType      = "hw_memory_type"
	PhysicalAddress = "hw_network_physical_address"
	DiskType        = "hw_physical_disk_type" // hdd, ssd or nvme
	DriverName      = "hw_driver"
	Device          = "hw_device" // the operating system's name at present, for joins with node_*

	// Source is the type of the probe of the round. Recording rules use it to choose which source of a component counts
	// in a sum.
	Source = "hw_source"
)

// SensorUnit is the label with the unit of a [SensorValue].
const SensorUnit = "hw_sensor_unit"

// Reading is one value of a component, in the metric's unit.
type Reading struct {
	Metric Metric
	Value  float64
	// Attributes are further labels, named by the metric's row: name, value, name, value, …. They are only read, so
	// many readings may share them.
	Attributes []string
	// At is when the value was read, in milliseconds since 1970, of one that is older than the round; else 0.
	At int64
}

// Report holds the readings of one component in one round.
type Report struct {
	Component
	Status   Status
	Readings []Reading
	// Refused are readings that the probe does not send because their numbers mean no reading ([Metric.Scaled]): AddTo adds them to those
	// that it refuses itself, in the device's number or the metric's unit.
	Refused []Reading
	// Elsewhere means that another source describes the component: it gets no hw_component_info from this one.
	Elsewhere bool
}

// Add adds one reading.
func (p *Report) Add(m Metric, v float64, attributes ...string) {
	p.Readings = append(p.Readings, Reading{Metric: m, Value: v, Attributes: attributes})
}

// AddTo adds the samples of the report to a round: hw_component_info, hw_status with each state that the kind can have (unless the
// status is zero), and all readings that are finite. It refuses readings that are not plausible. It allocates nothing once the round's
// memory has grown.
func (p *Report) AddTo(r *probes.Round) {
	var memory [44]string
	base := append(memory[:0], LabelID, p.ID, LabelName, p.Name, LabelParent, p.Parent)
	switch p.Kind {
	case Site:
		base = memory[:0]
	case Host:
		base = append(p.identity(memory[:0]), Source, r.Source)
	default:
		labels := append(append(base, LabelType, p.Kind.String()), p.Facts...)
		for i := len(base) + 2; i+1 < len(labels); i += 2 {
			labels[i+1] = known(labels[i], labels[i+1])
		}
		if !p.Elsewhere {
			r.Add(&families[Info], 1, append(labels, Source, r.Source)...)
		}
	}
	if p.Status != 0 {
		labels := append(base, LabelType, p.Kind.String(), LabelState, "")
		possible, status := p.Kind.states(), p.Status.within(p.Kind)
		for i, state := range states {
			if possible&(1<<i) == 0 {
				continue
			}
			labels[len(labels)-1] = state
			v := 0.0
			if status&(1<<i) != 0 {
				v = 1
			}
			r.Add(&families[StatusOf], v, labels...)
		}
	}
	for _, reading := range p.Readings {
		if math.IsNaN(reading.Value) || math.IsInf(reading.Value, 0) {
			continue
		}
		if !reading.Metric.Plausible(reading.Value) {
			p.refuse(r, reading)
			continue
		}
		labels := base
		if table[reading.Metric].typed {
			labels = append(labels, LabelType, p.Kind.String())
		}
		r.AddSample(probes.Sample{Family: &families[reading.Metric], Value: reading.Value, Labels: r.Keep(append(labels, reading.Attributes...)...), T: reading.At})
	}
	for _, reading := range p.Refused {
		p.refuse(r, reading)
	}
}

// refuse names a reading that is not sent.
func (p *Report) refuse(r *probes.Round, reading Reading) {
	r.Refuse(&families[reading.Metric], reading.Value, LabelID, p.ID, LabelName, p.Name, LabelType, p.Kind.String())
}
