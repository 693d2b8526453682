package bmcsim

import "encoding/binary"

// Completion codes (table 5-2).
const (
	codeUnknown    = 0xc1
	codeLength     = 0xc7
	codeTooMuch    = 0xca
	codeNotPresent = 0xcb
	codeInvalid    = 0xcc
)

// command answers a request of an active session.
func (m *Machine) command(r *request) (code byte, data []byte) {
	d := r.data
	switch uint16(r.netFn)<<8 | uint16(r.command) {
	case 0x0001: // Get Chassis Status (section 28.2): on, no fault
		return 0, []byte{0x21, 0, 0x40, 0}
	case 0x0427: // Get Sensor Thresholds (section 35.9)
		if s := m.sensor(d); s != nil && s.Unit != 0 {
			return 0, append([]byte{s.readable()}, s.Limits[:]...)
		}
		return codeNotPresent, nil
	case 0x042d: // Get Sensor Reading (section 35.14)
		switch s := m.sensor(d); {
		case s == nil:
			return codeNotPresent, nil
		case s.Unit != 0:
			return 0, []byte{s.Raw, 0xc0, 0xc0 | s.passed()}
		default:
			return 0, []byte{0, 0xc0, byte(s.States), 0x80 | byte(s.States>>8)}
		}
	case 0x0601: // Get Device ID (section 20.1)
		return 0, []byte{0x20, 1, 9, 0x08, 0x02, 0x8f, 0x91, 0x12, 0, 1, 0, 0, 0, 0, 0}
	case 0x0637: // Get System GUID (section 22.14)
		return 0, m.GUID[:]
	case 0x063b: // Set Session Privilege Level (section 22.18)
		if len(d) < 1 {
			return codeLength, nil
		}
		return 0, []byte{max(d[0]&0xf, 2)}
	case 0x2c02: // Get Power Reading (DCMI 1.5, section 6.6.1)
		if m.Watts == 0 || len(d) < 1 || d[0] != 0xdc {
			return codeUnknown, nil
		}
		w := binary.LittleEndian.AppendUint16([]byte{0xdc}, m.Watts)
		w = append(append(append(w, w[1:3]...), w[1:3]...), w[1:3]...)
		return 0, append(w, 0, 0, 0, 0, 1, 0, 0, 0, 0x40)
	}
	if r.netFn == 0x0a {
		return m.storage(r.command, d)
	}
	return codeUnknown, nil
}

// sensor returns the requested sensor; nil if there is none.
func (m *Machine) sensor(d []byte) *Sensor {
	if len(d) < 1 || d[0] == 0 || int(d[0]) > len(m.Sensors) {
		return nil
	}
	return &m.Sensors[d[0]-1]
}

// storage answers commands about inventories, records and the event log.
func (m *Machine) storage(command byte, d []byte) (code byte, data []byte) {
	switch command {
	case 0x10: // Get FRU Inventory Area Info (section 34.1)
		if len(d) < 1 || int(d[0]) >= len(m.Parts) {
			return codeNotPresent, nil
		}
		return 0, append(binary.LittleEndian.AppendUint16(nil, uint16(len(m.Parts[d[0]].inventory()))), 0)
	case 0x11: // Read FRU Data (section 34.2)
		if len(d) < 4 || int(d[0]) >= len(m.Parts) {
			return codeNotPresent, nil
		}
		all, at := m.Parts[d[0]].inventory(), int(binary.LittleEndian.Uint16(d[1:]))
		if at > len(all) {
			return codeInvalid, nil
		}
		part := all[at:min(len(all), at+int(d[3]))]
		return 0, append([]byte{byte(len(part))}, part...)
	case 0x20: // Get SDR Repository Info (section 33.9)
		info := append([]byte{0x51}, binary.LittleEndian.AppendUint16(nil, uint16(len(m.records)))...)
		return 0, append(info, 0, 0x10, 1, 2, 3, 4, 1, 2, 3, 4, 0x22)
	case 0x22: // Reserve SDR Repository (section 33.11)
		return 0, []byte{1, 0}
	case 0x23: // Get SDR (section 33.12)
		return m.record(d)
	case 0x40: // Get SEL Info (section 31.2)
		info := append([]byte{0x51}, binary.LittleEndian.AppendUint16(nil, uint16(len(m.Events)))...)
		return 0, append(info, 0, 0x10, 1, 2, 3, byte(len(m.Events)), 1, 2, 3, 4, 0x02)
	case 0x42: // Reserve SEL (section 31.4)
		return 0, []byte{1, 0}
	case 0x43: // Get SEL Entry (section 31.5)
		if len(d) < 6 || len(m.Events) == 0 {
			return codeNotPresent, nil
		}
		i := int(binary.LittleEndian.Uint16(d[2:])) - 1
		switch i {
		case -1:
			i = 0
		case 0xfffe:
			i = len(m.Events) - 1
		}
		if i >= len(m.Events) {
			return codeNotPresent, nil
		}
		next := []byte{0xff, 0xff}
		if i+1 < len(m.Events) {
			next = m.Events[i+1][:2]
		}
		return 0, append(append([]byte(nil), next...), m.Events[i]...)
	}
	return codeUnknown, nil
}

// largest bounds the bytes of a record in an answer, like BMCs with small buffers.
const largest = 48

// record answers Get SDR: request is reservation, ID, offset, bytes.
func (m *Machine) record(d []byte) (code byte, data []byte) {
	if len(d) < 6 {
		return codeLength, nil
	}
	i, at, n := max(int(binary.LittleEndian.Uint16(d[2:])), 1)-1, int(d[4]), int(d[5])
	if i == 0xfffe {
		i = len(m.records) - 1
	}
	if i >= len(m.records) {
		return codeNotPresent, nil
	}
	r := m.records[i]
	if at > len(r) {
		return codeInvalid, nil
	}
	if n == 0xff {
		n = len(r) - at
	}
	if n > largest {
		return codeTooMuch, nil
	}
	next := []byte{0xff, 0xff}
	if i+1 < len(m.records) {
		next = m.records[i+1][:2]
	}
	return 0, append(append([]byte(nil), next...), r[at:min(len(r), at+n)]...)
}
