//go:build linux

package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// module is a transceiver's memory: lower halves by address, upper halves by page of the address 50h.
type module struct {
	low   map[byte][]byte
	pages map[byte][]byte
	fail  error // of pages beyond the first
}

func (m *module) read(address, page byte, offset, length int) ([]byte, error) {
	switch {
	case length != half || offset != 0 && offset != half:
		return nil, unix.EINVAL
	case m.fail != nil && (address != moduleAddress || page != 0):
		return nil, m.fail
	case offset == 0 && m.low[address] != nil:
		return m.low[address], nil
	case offset == half && address == moduleAddress && m.pages[page] != nil:
		return m.pages[page], nil
	}
	return nil, unix.EREMOTEIO
}

func put(b []byte, at int, words ...uint16) {
	for i, w := range words {
		binary.BigEndian.PutUint16(b[at+2*i:], w)
	}
}

func blank(b []byte, at int, text string, n int) { copy(b[at:at+n], fmt.Sprintf("%-*s", n, text)) }

// limitWords are the four limits of temperature (75, -5, 70, 0 °C) and supply (3.6, 3.0, 3.5, 3.1 V).
var (
	warm  = []uint16{75 << 8, 0xfb00, 70 << 8, 0}
	volts = []uint16{36000, 30000, 35000, 31000}
	amps  = []uint16{6000, 500, 5500, 1000} // 12, 1, 11, 2 mA
	watts = []uint16{15849, 1000, 12589, 1259}
)

// sfp returns a 10GBASE-SR module that calibrates itself: 31.5 °C, 3.3 V, 6 mA, 0.5 mW out, 0.4 mW in.
func sfp() *module {
	id, d := make([]byte, half), make([]byte, half)
	id[0], id[92] = 0x03, 0x68
	blank(id, 20, "EXAMPLE OPTICS", 16)
	blank(id, 40, "EX-SFP10G-SR", 16)
	blank(id, 68, "SN000123", 16)
	put(d, 0, warm...)
	put(d, 8, volts...)
	put(d, 16, amps...)
	put(d, 24, watts...)
	put(d, 32, watts...)
	put(d, 96, 0x1f80, 33000, 3000, 5000, 4000)
	return &module{low: map[byte][]byte{moduleAddress: id, diagnostics: d}}
}

// calibratedOutside returns the module that leaves the calibration to its reader: its raw values are half of the real ones.
func calibratedOutside() *module {
	m := sfp()
	m.low[moduleAddress][92] = 0x58
	d := m.low[diagnostics]
	for _, at := range []int{76, 80, 84, 88} {
		put(d, at, 2<<8, 0)
	}
	binary.BigEndian.PutUint32(d[68:], math.Float32bits(2))
	put(d, 96, 0x0fc0, 16500, 1500, 2500, 2000)
	for i := range 20 {
		raw := binary.BigEndian.Uint16(d[2*i:])
		if i < 4 {
			put(d, 2*i, uint16(int16(raw)/2))
		} else {
			put(d, 2*i, raw/2)
		}
	}
	return m
}

// qsfp returns a 40G or 100G module of four lanes.
func qsfp() *module {
	low, id, limits := make([]byte, half), make([]byte, half), make([]byte, half)
	low[0] = 0x11
	put(low, 22, 0x1f80)
	put(low, 26, 33000)
	put(low, 34, 4000, 4100, 4200, 0) // no light on the fourth
	put(low, 42, 3000, 3000, 3000, 3000)
	put(low, 50, 5000, 5000, 5000, 5000)
	blank(id, 148-half, "EXAMPLE OPTICS", 16)
	blank(id, 168-half, "EX-QSFP28-SR4", 16)
	blank(id, 196-half, "SN000456", 16)
	put(limits, 0, warm...)
	put(limits, 16, volts...)
	put(limits, 48, watts...)
	put(limits, 56, amps...)
	put(limits, 64, watts...)
	return &module{low: map[byte][]byte{moduleAddress: low}, pages: map[byte][]byte{0: id, 3: limits}}
}

// cmis returns a 400G module of four lanes to the fibre, whose bias counts twice.
func cmis() *module {
	low, id, has, limits, lanes := make([]byte, half), make([]byte, half), make([]byte, half), make([]byte, half), make([]byte, half)
	low[0], low[88] = 0x18, 0x84
	put(low, 14, 0x1f80, 33000)
	blank(id, 129-half, "EXAMPLE OPTICS", 16)
	blank(id, 148-half, "EX-QDD-DR4", 16)
	blank(id, 166-half, "SN000789", 16)
	has[159-half], has[160-half] = 3, 0x0f // bias, light out, light in; times two
	put(limits, 0, warm...)
	put(limits, 8, volts...)
	put(limits, 48, watts...)
	put(limits, 56, 3000, 250, 2750, 500)
	put(limits, 64, watts...)
	for i := range 8 {
		put(lanes, 154-half+2*i, 5000)
		put(lanes, 170-half+2*i, 1500)
		put(lanes, 186-half+2*i, 4000)
	}
	return &module{low: map[byte][]byte{moduleAddress: low}, pages: map[byte][]byte{0: id, 1: has, 2: limits, 0x11: lanes}}
}

// shown returns a report's readings as text: metric, place, limit.
func shown(p *hw.Report) map[string]string {
	all := map[string]string{}
	for _, r := range p.Readings {
		all[fmt.Sprint(r.Metric, r.Attributes)] = fmt.Sprintf("%.3g", r.Value)
	}
	return all
}

func key(m hw.Metric, attributes ...string) string { return fmt.Sprint(m, attributes) }

// TestTransceivers: the same values and limits from each kind of memory; lanes by their number, their limits once.
func TestTransceivers(t *testing.T) {
	for name, tc := range map[string]struct {
		m       *module
		serial  string
		lane    string
		lanes   int
		in      string
		through int // readings at least
	}{
		"SFP": {sfp(), "SN000123", "", 1, "-3.98", 25}, "SFP calibrated outside": {calibratedOutside(), "SN000123", "", 1, "-3.98", 25},
		"QSFP": {qsfp(), "SN000456", ".1", 4, "-3.98", 33}, "CMIS": {cmis(), "SN000789", ".1", 4, "-3.98", 34},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := parseTransceiver(tc.m.read)
			if err != nil {
				t.Fatal(err)
			}
			p := x.report("pci:1/port0", "eth0", true)
			got := shown(&p)
			for k, want := range map[string]string{
				key(hw.TemperatureNow): "31.5", key(hw.VoltageNow): "3.3", key(hw.CurrentNow, "hw_sensor_location", "transmit"+tc.lane): "0.006",
				key(hw.OpticalPower, "hw_sensor_location", "transmit"+tc.lane): "-3.01", key(hw.OpticalPower, "hw_sensor_location", "receive"+tc.lane): tc.in,
				key(hw.TemperatureLimit, "hw_limit_type", "high.critical"):                                    "75",
				key(hw.TemperatureLimit, "hw_limit_type", "low.critical"):                                     "-5",
				key(hw.VoltageLimit, "hw_limit_type", "low.degraded"):                                         "3.1",
				key(hw.CurrentLimit, "hw_sensor_location", "transmit", "hw_limit_type", "high.degraded"):      "0.011",
				key(hw.OpticalPowerLimit, "hw_sensor_location", "receive", "hw_limit_type", "low.critical"):   "-10",
				key(hw.OpticalPowerLimit, "hw_sensor_location", "transmit", "hw_limit_type", "high.degraded"): "1",
			} {
				if got[k] != want {
					t.Errorf("%s is %q, want %s", k, got[k], want)
				}
			}
			if p.Facts[5] != tc.serial || p.Facts[1] != "EXAMPLE OPTICS" || p.ID != "pci:1/port0/transceiver" || len(got) < tc.through {
				t.Errorf("%v, %d readings: %v", p.Component, len(got), got)
			}
			n := 0
			for _, r := range p.Readings {
				if r.Metric == hw.CurrentNow {
					n++
				}
			}
			if n != tc.lanes {
				t.Errorf("%d lanes, want %d", n, tc.lanes)
			}
			want := hw.OK
			if name == "QSFP" {
				want = hw.Degraded // its fourth lane has no light
			}
			if p.Status != want {
				t.Errorf("it is %s, want %s", p.Status, want)
			}
		})
	}
}

// TestTransceiverStates: heat fails the module, weak light of a link that is up degrades it, and a port without a link says nothing of light.
func TestTransceiverStates(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(d []byte)
		up     bool
		want   string
	}{
		{"well", func([]byte) {}, true, "ok"}, {"warm", func(d []byte) { put(d, 96, 72<<8) }, false, "degraded"}, {"hot", func(d []byte) { put(d, 96, 80<<8) }, true, "failed"},
		{"weak light", func(d []byte) { put(d, 104, 900) }, true, "degraded"}, {"no link", func(d []byte) { put(d, 104, 900) }, false, "ok"},
		{"no light and a link", func(d []byte) { put(d, 104, 0) }, true, "degraded"},
		{"no limits", func(d []byte) { clear(d[:40]) }, true, ""},
	} {
		m := sfp()
		tc.change(m.low[diagnostics])
		x, err := parseTransceiver(m.read)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.status(tc.up).String(); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestTransceiversWithoutMonitors: cables and old modules have an identity only; what cannot be read costs the monitors.
func TestTransceiversWithoutMonitors(t *testing.T) {
	copper, old, flat, broken := qsfp(), sfp(), cmis(), sfp()
	put(copper.low[moduleAddress], 26, 0)
	old.low[moduleAddress][92] = 0
	flat.low[moduleAddress][2] = 1 << 7
	broken.fail = unix.EREMOTEIO
	for name, m := range map[string]*module{"copper": copper, "old": old, "flat": flat, "broken": broken} {
		x, err := parseTransceiver(m.read)
		if x == nil || len(x.monitors) != 0 || !strings.HasPrefix(x.vendor, "EXAMPLE") || (err != nil) != (name == "broken") {
			t.Errorf("%s: %+v, %v", name, x, err)
		}
	}
	unknown := sfp()
	unknown.low[moduleAddress][0] = 0x7f
	if _, err := parseTransceiver(unknown.read); err == nil || !strings.Contains(err.Error(), "0x7f") {
		t.Error(err)
	}
}

// opticsOf returns a collector of a machine with these network devices, of which one is virtual.
func opticsOf(t *testing.T, modules map[string]any) *optics {
	t.Helper()
	dir := t.TempDir()
	for name := range modules {
		at := filepath.Join(dir, "class/net", name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(name, "br") {
			if err := os.Mkdir(at+"/device", 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for file, text := range map[string]string{"operstate": "up\n", "address": "02:00:00:00:00:01\n"} {
			if err := os.WriteFile(filepath.Join(at, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := mustNew(t, Config{SysPath: dir, Collectors: []string{"hw_optics"}})
	o, ok := p.collectors[0].reader.(*optics)
	if !ok {
		t.Fatal("hw_optics is read by another reader")
	}
	o.guard.limit = time.Minute // of the bubble, if something hangs
	o.open = func(device string) (memory, func(), error) {
		switch m := modules[device].(type) {
		case *module:
			return m.read, func() {}, nil
		case error:
			return func(byte, byte, int, int) ([]byte, error) { return nil, m }, func() {}, nil
		case chan struct{}:
			<-m
		}
		return nil, nil, errors.New("it should not be read")
	}
	return o
}

// TestOptics: each port's transceiver is a component below the port; a port without one has none, one that hangs costs itself, and a missing right
// says what to do.
func TestOptics(t *testing.T) {
	synctest.Test(t, testOptics) // only what hangs makes the time pass
}

func testOptics(t *testing.T) {
	hang := make(chan struct{})
	o := opticsOf(t, map[string]any{"eth0": sfp(), "eth1": cmis(), "eth2": unix.EOPNOTSUPP, "eth3": unix.EPERM, "eth4": hang, "br0": nil})
	defer close(hang)
	for range 2 {
		r := probes.NewRound(0)
		o.machine.begin()
		err := o.read(t.Context(), r)
		if err == nil || !strings.Contains(err.Error(), "eth3: operation not permitted: reading transceivers needs the capability CAP_NET_ADMIN") || !strings.Contains(err.Error(), "eth4: no answer within") ||
			strings.Contains(err.Error(), "eth2") || strings.Contains(err.Error(), "br0") {
			t.Error(err)
		}
		info := 0
		for _, s := range r.Samples() {
			if s.Family.Name == "hw_component_info" {
				info++
			}
		}
		if info != 2 {
			t.Errorf("%d transceivers, want 2", info)
		}
	}
	none := opticsOf(t, map[string]any{"eth2": unix.EOPNOTSUPP})
	if err := none.read(t.Context(), probes.NewRound(0)); !errors.Is(err, errAbsent) {
		t.Error(err)
	}
}

// TestEthtoolOfKernel: the kernel understands the question. The loopback device has no transceiver; without CAP_NET_ADMIN the kernel refuses before it looks.
func TestEthtoolOfKernel(t *testing.T) {
	e, err := openEthtool(2 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	if _, err := e.read("lo", moduleAddress, 0, 0, half); !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EPERM) {
		t.Errorf("the kernel says %v, want that it has none, or that it may not be asked", err)
	}
	if os.Geteuid() == 0 {
		if _, err := e.read("none-such-0", moduleAddress, 0, 0, half); !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EPERM) {
			t.Errorf("of a device that is not there the kernel says %v", err)
		}
	}
}

func FuzzTransceiver(f *testing.F) {
	for _, m := range []*module{sfp(), calibratedOutside(), qsfp(), cmis()} {
		f.Add(m.low[moduleAddress], m.pages[0], m.low[diagnostics])
	}
	f.Fuzz(func(t *testing.T, low, page, other []byte) {
		x, _ := parseTransceiver(func(address, number byte, offset, _ int) ([]byte, error) {
			switch {
			case address == diagnostics:
				return other, nil
			case offset == 0:
				return low, nil
			case number == 0:
				return page, nil
			}
			return other, nil
		})
		if x == nil {
			return
		}
		p := x.report("port", "eth0", true)
		r := probes.NewRound(0)
		p.AddTo(r)
		seen := map[string]bool{}
		for _, s := range r.Samples() {
			key := s.Family.Name + fmt.Sprint(s.Labels)
			if seen[key] || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
				t.Errorf("%s %v", key, s.Value)
			}
			seen[key] = true
		}
	})
}

func FuzzNetlink(f *testing.F) {
	f.Add([]byte{28, 0, 0, 0, 0x15, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 6, 0, 1, 0, 0x15, 0, 0, 0})
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _, _ = parseNetlink(b, 1)
	})
}
