package host

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"hwsagent/probes/hw"
)

// The code below turns the memory of a plugged transceiver into a component, without I/O: SFP by SFF-8472 (revision
// 12.4), QSFP by SFF-8636 (revision 2.11), and QSFP-DD, OSFP and others by CMIS (revision 5.2).

// memory reads length bytes from an offset of a page of a transceiver, at one of its two addresses. Pages have 256
// bytes; the lower 128 are the same in all pages, and no read crosses the middle.
type memory func(address, page byte, offset, length int) ([]byte, error)

// Addresses (SFF-8472, section 4).
const (
	moduleAddress = 0x50
	diagnostics   = 0x51 // monitors of an SFP
	half          = 128
)

// transceiver holds the data from the memory.
type transceiver struct {
	vendor, model, serial string
	monitors              []monitor
}

// monitor is one value that the transceiver measures, and its limits, in the metric's unit.
type monitor struct {
	metric, limit hw.Metric
	at            string // hw_sensor_location; "" for the transceiver as a whole
	value         float64
	limits        [4]float64 // in the order of monitorLimits; NaN: none
}

// monitorLimits are the limits in the order common to all three standards.
var monitorLimits = [4]string{"high.critical", "low.critical", "high.degraded", "low.degraded"}

// scale converts the standards' 16-bit value to the metric's unit.
type scale func(raw uint16) float64

// The units of the three standards: 1/256 °C, 100 µV, 2 µA, 0.1 µW.
func centigrade(raw uint16) float64 { return float64(int16(raw)) / 256 } // #nosec G115 -- twos' complement
func supply(raw uint16) float64     { return float64(raw) / 1e4 }
func bias(raw uint16) float64       { return float64(raw) * 2e-6 }
func light(raw uint16) float64      { return milliwatts(float64(raw) / 1e4) }

// milliwatts converts a power to dBm; no light gives -Inf, which is below each limit and becomes no sample.
func milliwatts(mw float64) float64 { return 10 * math.Log10(max(mw, 0)) }

// parseTransceiver parses a transceiver of any known kind.
func parseTransceiver(read memory) (*transceiver, error) {
	low, err := read(moduleAddress, 0, 0, half)
	if err != nil {
		return nil, err
	}
	if len(low) < half {
		return nil, errShortMemory
	}
	switch low[0] { // SFF-8024, table 4-1
	case 0x03, 0x0b: // SFP, DWDM-SFP
		return parseSFP(read, low)
	case 0x0c, 0x0d, 0x11: // QSFP, QSFP+, QSFP28
		return parseQSFP(read, low)
	case 0x18, 0x19, 0x1b, 0x1e, 0x1f, 0x20, 0x21: // QSFP-DD, OSFP, DSFP, and with CMIS: QSFP+, SFP-DD, SFP+, OSFP-XD
		return parseCMIS(read, low)
	}
	return nil, fmt.Errorf("a transceiver of the kind %#02x, which is not known", low[0])
}

var errShortMemory = fmt.Errorf("the transceiver's memory is shorter than its standard has it")

// words16 returns the numbers of 16 bits at an offset; fewer if the memory ends.
func words16(b []byte, at, n int) []uint16 {
	var all []uint16
	for i := range n {
		if at+2*i+2 <= len(b) {
			all = append(all, binary.BigEndian.Uint16(b[at+2*i:]))
		}
	}
	return all
}

// add adds a monitor with its value and its four limits, if there are any.
func (t *transceiver) add(metric, limit hw.Metric, at string, s scale, raw uint16, limits []uint16) {
	m := monitor{metric: metric, limit: limit, at: at, value: s(raw)}
	set := false
	for _, l := range limits {
		set = set || l != 0
	}
	for i := range m.limits {
		if m.limits[i] = math.NaN(); set && i < len(limits) {
			if v := s(limits[i]); !math.IsInf(v, 0) {
				m.limits[i] = v
			}
		}
	}
	t.monitors = append(t.monitors, m)
}

// parseSFP parses an SFP (SFF-8472). Its lower half has the identity.
func parseSFP(read memory, low []byte) (*transceiver, error) {
	t := &transceiver{vendor: padded(low[20:36]), model: padded(low[40:56]), serial: padded(low[68:84])}
	const implemented, external, addressChange = 1 << 6, 1 << 4, 1 << 2 // of byte 92
	if low[92]&implemented == 0 || low[92]&addressChange != 0 {
		return t, nil
	}
	b, err := read(diagnostics, 0, 0, half)
	if err != nil {
		return t, fmt.Errorf("read the monitors: %w", err)
	}
	if len(b) < half {
		return t, errShortMemory
	}
	scales := [...]scale{centigrade, supply, bias, light, light}
	if low[92]&external != 0 {
		scales = calibrated(b)
	}
	for i, m := range [...]struct {
		metric, limit hw.Metric
		at            string
	}{
		{hw.TemperatureNow, hw.TemperatureLimit, ""}, {hw.VoltageNow, hw.VoltageLimit, ""}, {hw.CurrentNow, hw.CurrentLimit, "transmit"},
		{hw.OpticalPower, hw.OpticalPowerLimit, "transmit"}, {hw.OpticalPower, hw.OpticalPowerLimit, "receive"},
	} {
		t.add(m.metric, m.limit, m.at, scales[i], words16(b, 96+2*i, 1)[0], words16(b, 8*i, 4))
	}
	return t, nil
}

// calibrated returns the scales of an SFP that leaves calibration to the reader (SFF-8472, section 9.3).
func calibrated(b []byte) [5]scale {
	line := func(at int, s func(float64) float64) scale {
		slope, offset := float64(binary.BigEndian.Uint16(b[at:]))/256, float64(int16(binary.BigEndian.Uint16(b[at+2:]))) // #nosec G115 -- twos' complement
		return func(raw uint16) float64 { return s(slope*float64(raw) + offset) }
	}
	slope, offset := float64(binary.BigEndian.Uint16(b[84:]))/256, float64(int16(binary.BigEndian.Uint16(b[86:]))) // #nosec G115 -- twos' complement
	return [5]scale{
		func(raw uint16) float64 { return (slope*float64(int16(raw)) + offset) / 256 }, // #nosec G115 -- twos' complement
		line(88, func(v float64) float64 { return v / 1e4 }),
		line(76, func(v float64) float64 { return v * 2e-6 }),
		line(80, func(v float64) float64 { return milliwatts(v / 1e4) }),
		func(raw uint16) float64 {
			sum, power := 0.0, 1.0
			for at := 72; at >= 56; at -= 4 { // from the constant to the fourth power
				sum += float64(math.Float32frombits(binary.BigEndian.Uint32(b[at:]))) * power
				power *= float64(raw)
			}
			return milliwatts(sum / 1e4)
		},
	}
}

// lane returns the location of a value of one lane among several.
func lane(way string, i int) string { return fmt.Sprintf("%s.%d", way, i+1) }

// laneMonitors describes where the values and limits of all lanes are.
type laneMonitors struct {
	metric, limit hw.Metric
	way           string
	scale         scale
	value, limits int // offsets
}

func (t *transceiver) addLanes(values, limits []byte, lanes int, all ...laneMonitors) {
	for _, m := range all {
		for i, raw := range words16(values, m.value, lanes) {
			t.add(m.metric, m.limit, lane(m.way, i), m.scale, raw, words16(limits, m.limits, 4))
		}
	}
}

// parseQSFP parses a QSFP (SFF-8636). Its lower half has the values, page 0 the identity, page 3 the limits.
func parseQSFP(read memory, low []byte) (*transceiver, error) {
	id, err := read(moduleAddress, 0, half, half)
	if err != nil {
		return nil, fmt.Errorf("read the identity: %w", err)
	}
	if len(id) < half {
		return nil, errShortMemory
	}
	t := &transceiver{vendor: padded(id[148-half : 164-half]), model: padded(id[168-half : 184-half]), serial: padded(id[196-half : 212-half])}
	volts := words16(low, 26, 1)[0]
	if volts == 0 { // a cable without monitors
		return t, nil
	}
	var limits []byte
	if flat := low[2]&(1<<2) != 0; !flat {
		if limits, err = read(moduleAddress, 3, half, half); err != nil {
			return t, fmt.Errorf("read the limits: %w", err)
		}
	}
	t.add(hw.TemperatureNow, hw.TemperatureLimit, "", centigrade, words16(low, 22, 1)[0], words16(limits, 128-half, 4))
	t.add(hw.VoltageNow, hw.VoltageLimit, "", supply, volts, words16(limits, 144-half, 4))
	if copper := id[147-half]>>4 >= 0xa; copper {
		return t, nil
	}
	t.addLanes(low, limits, 4,
		laneMonitors{hw.CurrentNow, hw.CurrentLimit, "transmit", bias, 42, 184 - half},
		laneMonitors{hw.OpticalPower, hw.OpticalPowerLimit, "transmit", light, 50, 192 - half},
		laneMonitors{hw.OpticalPower, hw.OpticalPowerLimit, "receive", light, 34, 176 - half})
	return t, nil
}

// parseCMIS parses a transceiver with CMIS: the lower half has temperature and voltage, page 00h the identity, 01h the
// features, 02h the limits, 11h the lanes.
func parseCMIS(read memory, low []byte) (*transceiver, error) {
	id, err := read(moduleAddress, 0, half, half)
	if err != nil {
		return nil, fmt.Errorf("read the identity: %w", err)
	}
	if len(id) < half {
		return nil, errShortMemory
	}
	t := &transceiver{vendor: padded(id[129-half : 145-half]), model: padded(id[148-half : 164-half]), serial: padded(id[166-half : 182-half])}
	flat := low[2]&(1<<7) != 0
	if flat { // a cable without monitors (CMIS, section 8.2.2)
		return t, nil
	}
	var pages [3][]byte
	for i, page := range [...]byte{0x01, 0x02, 0x11} {
		if pages[i], err = read(moduleAddress, page, half, half); err != nil {
			return t, fmt.Errorf("read page %02Xh: %w", page, err)
		}
		if len(pages[i]) < half {
			return t, errShortMemory
		}
	}
	has, limits, lanes := pages[0], pages[1], pages[2]
	if has[159-half]&(1<<0) != 0 {
		t.add(hw.TemperatureNow, hw.TemperatureLimit, "", centigrade, words16(low, 14, 1)[0], words16(limits, 128-half, 4))
	}
	if has[159-half]&(1<<1) != 0 {
		t.add(hw.VoltageNow, hw.VoltageLimit, "", supply, words16(low, 16, 1)[0], words16(limits, 136-half, 4))
	}
	n := int(low[88] & 0xf) // media lanes of the first application
	if n == 0 || n > 8 {
		n = 8
	}
	times := float64(int(1) << (has[160-half] >> 3 & 3)) // the bias' multiplier: 1, 2 or 4
	for bit, m := range [...]laneMonitors{
		{hw.CurrentNow, hw.CurrentLimit, "transmit", func(raw uint16) float64 { return bias(raw) * times }, 170 - half, 184 - half},
		{hw.OpticalPower, hw.OpticalPowerLimit, "transmit", light, 154 - half, 176 - half},
		{hw.OpticalPower, hw.OpticalPowerLimit, "receive", light, 186 - half, 192 - half},
	} {
		if has[160-half]&(1<<bit) != 0 {
			t.addLanes(lanes, limits, n, m)
		}
	}
	return t, nil
}

// padded returns a text without trailing blanks and without characters outside of printable ASCII.
func padded(b []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, string(b)))
}

// status returns the transceiver's status by its own limits. Light and laser current only count while the link is up: a
// port without a cable has none.
func (t *transceiver) status(up bool) hw.Status {
	st := hw.Status(0)
	for i := range t.monitors {
		m := &t.monitors[i]
		for j, l := range m.limits {
			if math.IsNaN(l) || m.at != "" && !up {
				continue
			}
			st = st.Join(hw.OK)
			if beyond := j%2 == 0 && m.value > l || j%2 == 1 && m.value < l; !beyond {
				continue
			}
			if m.at == "" && j < 2 {
				st = st.Join(hw.Failed)
			} else {
				st = st.Join(hw.Degraded)
			}
		}
	}
	return st
}

// report returns the report of the transceiver in the port with that ID and name.
func (t *transceiver) report(port, name string, up bool) hw.Report {
	p := hw.Report{Status: t.status(up), Component: hw.Component{Kind: hw.Module, ID: port + "/transceiver", Name: name + " transceiver", Parent: port, Facts: []string{
		hw.Vendor, t.vendor, hw.Model, t.model, hw.Serial, t.serial, hw.Device, name}}}
	for _, m := range t.monitors {
		var at []string
		if m.at != "" {
			at = []string{hw.LabelLocation, m.at}
		}
		p.Add(m.metric, m.value, at...)
		for i, l := range m.limits {
			if i < len(monitorLimits) && !math.IsNaN(l) && (m.at == "" || strings.HasSuffix(m.at, "mit") || strings.HasSuffix(m.at, "ive") || strings.HasSuffix(m.at, ".1")) {
				p.Add(m.limit, l, append(limitPlace(m.at), hw.LabelLimitType, monitorLimits[i])...)
			}
		}
	}
	return p
}

// limitPlace returns the location label for limits: all lanes have the same ones, so they appear once per direction.
func limitPlace(at string) []string {
	way, _, _ := strings.Cut(at, ".")
	if way == "" {
		return nil
	}
	return []string{hw.LabelLocation, way}
}
