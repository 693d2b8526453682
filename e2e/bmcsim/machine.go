package bmcsim

import (
	"encoding/binary"
	"fmt"
)

// Machine is the hardware monitored by a BMC. Many BMCs may share one: it is only read.
type Machine struct {
	User, Password string // of the one account, which has every privilege
	GUID           [16]byte
	Sensors        []Sensor
	Parts          []Part   // Parts[0] is the machine itself, FRU device 0
	Events         [][]byte // of the event log, oldest first, 16 bytes each
	Watts          uint16   // by DCMI; 0 is a BMC without DCMI

	records [][]byte // of the repository, made by prepare
}

// Sensor is one sensor: a value with limits if Unit is not 0, else a set of states.
type Sensor struct {
	Name             string  // 16 bytes at most
	Type             byte    // table 42-3
	Entity, Instance byte    // table 43-13
	Unit             byte    // table 43-15
	M, Exponent      int     // the value is M × Raw × 10^Exponent
	Raw              byte    // the present reading
	Limits           [6]byte // lower non-critical, critical, non-recoverable, then the upper ones; 0 is none
	States           uint16  // for a sensor of states: the active ones (event/reading type 6Fh)
}

// Part is an inventory.
type Part struct {
	Name                          string // of its locator record, 16 bytes at most
	Entity, Instance              byte   // table 43-13
	Maker, Product, Model, Serial string
}

// Units and types that machines of this package have.
const (
	celsius, volts, watts, rpm                             = 1, 4, 6, 18
	typeTemperature, typeVoltage, typeFan, typePower       = 0x01, 0x02, 0x04, 0x0b
	typeSupply, typeMemory, typeSlot                       = 0x08, 0x0c, 0x0d
	entityCPU, entityDisk, entityBoard, entityDIMM         = 3, 4, 7, 32
	entitySupply, entityChassis, entityFan, entityAirInlet = 10, 23, 29, 55
)

// NewMachine returns a typical server: 60 sensors, which are 18 temperatures, 10 fans, 10 voltages, 2 power supplies
// with input power and states, 12 memory modules, 6 disks; and inventories of the machine, its power supplies and its
// memory modules.
func NewMachine(user, password string) *Machine {
	m := &Machine{User: user, Password: password, Watts: 314, GUID: [16]byte{0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x46, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}}
	add := func(s Sensor) { m.Sensors = append(m.Sensors, s) }
	warm := [6]byte{0, 0, 0, 85, 95, 105}
	for i := range byte(2) {
		add(Sensor{Name: fmt.Sprintf("CPU%d Temp", i+1), Type: typeTemperature, Entity: entityCPU, Instance: i + 1, Unit: celsius, M: 1, Raw: 48 + i, Limits: warm})
	}
	for i := range byte(12) {
		add(Sensor{Name: fmt.Sprintf("DIMM%d Temp", i+1), Type: typeTemperature, Entity: entityDIMM, Instance: i + 1, Unit: celsius, M: 1, Raw: 36 + i, Limits: warm})
	}
	for i, name := range []string{"Inlet Temp", "Exhaust Temp", "VRM Temp", "Board Temp"} {
		at := byte(entityBoard)
		if i == 0 {
			at = entityAirInlet
		}
		add(Sensor{Name: name, Type: typeTemperature, Entity: at, Instance: byte(i + 1), Unit: celsius, M: 1, Raw: 22 + 6*byte(i), Limits: warm})
	}
	for i := range byte(10) {
		add(Sensor{Name: fmt.Sprintf("FAN%d", i+1), Type: typeFan, Entity: entityFan, Instance: i + 1, Unit: rpm, M: 60, Raw: 120 + i, Limits: [6]byte{12, 8, 4, 0, 0, 0}})
	}
	for i, v := range []byte{120, 50, 33, 18, 12, 11, 10, 9, 30, 15} { // tenths of a volt
		add(Sensor{Name: fmt.Sprintf("P%dV%d", v/10, v%10), Type: typeVoltage, Entity: entityBoard, Instance: byte(i + 1), Unit: volts, M: 1, Exponent: -1, Raw: v, Limits: [6]byte{v - v/10 - 1, v - v/5 - 1, 0, v + v/10 + 1, v + v/5 + 1, 0}})
	}
	for i := range byte(2) {
		add(Sensor{Name: fmt.Sprintf("PS%d Input Power", i+1), Type: typePower, Entity: entitySupply, Instance: i + 1, Unit: watts, M: 2, Raw: 80 + i, Limits: [6]byte{0, 0, 0, 240, 250, 0}})
		add(Sensor{Name: fmt.Sprintf("PS%d Status", i+1), Type: typeSupply, Entity: entitySupply, Instance: i + 1, States: 1})
	}
	for i := range byte(12) {
		add(Sensor{Name: fmt.Sprintf("DIMM%d", i+1), Type: typeMemory, Entity: entityDIMM, Instance: i + 1, States: 1 << 6}) // present
	}
	for i := range byte(6) {
		add(Sensor{Name: fmt.Sprintf("Disk%d", i+1), Type: typeSlot, Entity: entityDisk, Instance: i + 1, States: 1}) // present
	}
	part := func(entity, instance byte, name, product string) {
		n := len(m.Parts)
		m.Parts = append(m.Parts, Part{Name: name, Entity: entity, Instance: instance, Maker: "Example Systems", Product: product, Model: fmt.Sprintf("EX-%03d", entity), Serial: fmt.Sprintf("SN%06d", 700+n)})
	}
	part(entityChassis, 1, "System", "Server 900")
	for i := range byte(2) {
		part(entitySupply, i+1, fmt.Sprintf("PS%d", i+1), "Power Supply 800 W")
	}
	for i := range byte(12) {
		part(entityDIMM, i+1, fmt.Sprintf("DIMM%d", i+1), "Module 32 GiB")
	}
	m.Events = [][]byte{event(1, typeSupply, 0x30, 1), event(2, typeSlot, 0x50, 1)}
	m.prepare()
	return m
}

// event returns an entry of the event log (section 32.1): a sensor enters a state.
func event(id uint16, kind, number, state byte) []byte {
	e := make([]byte, 16)
	binary.LittleEndian.PutUint16(e, id)
	e[2] = 0x02
	binary.LittleEndian.PutUint32(e[3:], 1_700_000_000+uint32(id))
	e[7], e[9], e[10], e[11], e[12], e[13], e[14], e[15] = bmcAddress, 4, kind, number, 0x6f, state, 0xff, 0xff
	return e
}

// prepare creates the records.
func (m *Machine) prepare() {
	m.records = nil
	for i := range m.Sensors {
		m.records = append(m.records, m.Sensors[i].record(uint16(len(m.records)+1), byte(i+1)))
	}
	for i := 1; i < len(m.Parts); i++ {
		m.records = append(m.records, m.Parts[i].record(uint16(len(m.records)+1), byte(i)))
	}
}

// record returns a sensor's full (section 43.1) or compact (section 43.2) record.
func (s *Sensor) record(id uint16, number byte) []byte {
	size, kind := 47, byte(0x01)
	if s.Unit == 0 {
		size, kind = 31, 0x02
	}
	r := make([]byte, size, size+17)
	binary.LittleEndian.PutUint16(r, id)
	r[2], r[3], r[5], r[7], r[8], r[9], r[10] = 0x51, kind, bmcAddress, number, s.Entity, s.Instance, 0x7f
	r[12] = s.Type
	if s.Unit == 0 {
		r[11], r[13], r[23] = 0x40, 0x6f, 1
	} else {
		r[11], r[13] = 0x40|1<<2, 0x01 // limits can be read
		r[18], r[21] = s.readable(), s.Unit
		r[24], r[25] = byte(s.M), byte(s.M>>8&3)<<6
		r[29] = byte(s.Exponent&0xf) << 4
		l := s.Limits
		r[36], r[37], r[38], r[39], r[40], r[41] = l[5], l[4], l[3], l[2], l[1], l[0]
	}
	return named(r, s.Name)
}

// readable returns the sensor's limits, as bits.
func (s *Sensor) readable() (bits byte) {
	for i, l := range s.Limits {
		if l != 0 {
			bits |= 1 << i
		}
	}
	return bits
}

// passed returns the limits that the reading exceeds, as bits (section 35.14).
func (s *Sensor) passed() (bits byte) {
	for i, l := range s.Limits {
		if l != 0 && (i < 3 && s.Raw <= l || i >= 3 && s.Raw >= l) {
			bits |= 1 << i
		}
	}
	return bits
}

// record returns a part's FRU device locator record (section 43.8).
func (p *Part) record(id uint16, device byte) []byte {
	r := make([]byte, 15, 32)
	binary.LittleEndian.PutUint16(r, id)
	r[2], r[3], r[5], r[6], r[7], r[10], r[12], r[13] = 0x51, 0x11, bmcAddress, device, 0x80, 0x10, p.Entity, p.Instance
	return named(r, p.Name)
}

// named appends a name in ASCII to a record (section 43.15).
func named(r []byte, name string) []byte {
	r = append(append(r, 0xc0|byte(len(name))), name...)
	r[4] = byte(len(r) - 5)
	return r
}

// inventory returns the part's inventory: a common header and a product area (FRU, sections 8 and 12).
func (p *Part) inventory() []byte {
	area := []byte{1, 0, 0}
	for _, text := range []string{p.Maker, p.Product, p.Model, "", p.Serial} {
		area = append(append(area, 0xc0|byte(len(text))), text...)
	}
	area = append(area, 0xc1)
	for (len(area)+1)%8 != 0 {
		area = append(area, 0)
	}
	area[1] = byte((len(area) + 1) / 8)
	area = append(area, checksum(area))
	header := []byte{1, 0, 0, 0, 1, 0, 0}
	return append(append(header, checksum(header)), area...)
}
