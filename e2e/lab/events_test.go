//go:build linux && amd64

package lab

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hwsagent/e2e/bmcsim"
)

// event is one thing that happens to a device.
type event struct {
	name   string
	device string            // which it happens to: one at a time
	mine   func(series) bool // series that it may cost; nil: none
	// begin makes it happen, and end undoes it. fired and healed return "" once the agent's own series show it.
	begin, end    func()
	fired, healed func(since int64) string
}

// conflicts reports whether the two may not happen at once: to one device, or to the last two of a kind. Without any NVMe disk the
// collector nvme has nothing to read, and is silent for a good reason.
func (e event) conflicts(o event) bool {
	lastOfKind := strings.HasPrefix(e.name, "unplug nvme") && strings.HasPrefix(o.name, "unplug nvme")
	return e.device == o.device || lastOfKind
}

// controller is the device of all events of the management controller.
const controller = "the management controller"

// rig is the machine with what is known of it.
type rig struct {
	t *testing.T
	v *vm
	r *record
	n int // of hangs so far: each reads another part of its disk, which is in no cache

	line *bmcsim.Line // the second management controller
}

// now is the machine's clock, in milliseconds.
func (g *rig) now() int64 {
	g.t.Helper()
	return g.v.try("/bin/true").To
}

// newest is the newest value of a series since a time.
func (g *rig) newest(job string, since int64, want func(series) bool) (v float64, there bool) {
	for _, s := range g.r.copy() {
		if s.job != job || len(s.samples) == 0 || !want(s) {
			continue
		}
		if x := s.samples[len(s.samples)-1]; x.at >= since && !x.stale() {
			v, there, since = x.v, true, x.at
		}
	}
	return v, there
}

// is waits until a series has a value, there until it has one, and gone until a round of the probe has none of it.
func (g *rig) is(job string, since int64, want float64, named func(series) bool) string {
	if v, there := g.newest(job, since, named); !there || math.Abs(v-want) > 0.01 {
		return fmt.Sprintf("the series is %v (%t), not %v", v, there, want)
	}
	return ""
}

func (g *rig) there(job string, since int64, named func(series) bool) string {
	if _, there := g.newest(job, since, named); !there {
		return "the series has no sample"
	}
	return ""
}

func (g *rig) gone(job string, since int64, named func(series) bool) string {
	all := g.r.copy()
	ups := rounds(all, job, since)
	if len(ups) < 2 {
		return "no round has come as a whole" // the last one may be on its way
	}
	last := ups[len(ups)-2].at
	for _, s := range all {
		if s.job == job && named(s) && slices.ContainsFunc(s.samples, func(x sample) bool { return x.at == last && !x.stale() }) {
			return "the series goes on"
		}
	}
	return ""
}

// named is the series of that name with these labels, and maybe more.
func named(name string, labels ...string) func(series) bool {
	return func(s series) bool {
		if s.name != name {
			return false
		}
		for i := 0; i < len(labels); i += 2 {
			if !strings.HasPrefix(s.labels[labels[i]], labels[i+1]) {
				return false
			}
		}
		return true
	}
}

// component is the labels of the device that the agent showed last among those that are wanted, nil if there is none. The kernel gives the
// name of a device that was unplugged to the next one, so older series may have the same name.
func (g *rig) component(want func(labels map[string]string) bool) (labels map[string]string) {
	var newest int64
	for _, s := range g.r.copy() {
		if s.name == "hw_component_info" && s.job == "host" && want(s.labels) {
			if x := s.samples[len(s.samples)-1]; !x.stale() && x.at > newest {
				labels, newest = s.labels, x.at
			}
		}
	}
	return labels
}

// kernelName is how the kernel calls a device now, by the agent's hw_id, or "".
func (g *rig) kernelName(id string) string {
	return g.component(func(ls map[string]string) bool { return strings.HasPrefix(ls["hw_id"], id) && ls["hw_device"] != "" })["hw_device"]
}

// of are the series of a device: those with one of its hw_ids, which byIdentity puts in place of the kernel's names, and those with
// the kernel's name of it or of its partitions.
func of(name string, ids ...string) func(series) bool {
	kernels := regexp.MustCompile(`(^|_)` + regexp.QuoteMeta(name) + `(n?[0-9]+)?$`)
	return func(s series) bool {
		for label, v := range s.labels {
			mine := func(id string) bool { return strings.Contains(v, id) }
			named := slices.Contains(deviceLabels(), label)
			if (named || label == "hw_id" || label == "hw_parent") && slices.ContainsFunc(ids, mine) ||
				named && name != "" && kernels.MatchString(v) {
				return true
			}
		}
		return false
	}
}

// plug takes a device out of the machine and puts it back.
func (g *rig) plug(id, name, hwID string, p properties) event {
	component := named("hw_component_info", "hw_id", hwID)
	address, _, _ := strings.Cut(strings.TrimPrefix(hwID, "at:"), "/") // of a network device, whose PCI device has counters of its own
	return event{
		name: "unplug " + id, device: id, mine: of(name, hwID, address),
		begin: func() {
			had := g.v.monitor.count("DEVICE_DELETED", id)
			g.v.qmp("device_del", map[string]any{"id": id})
			eventually(g.t, time.Minute, func() string {
				if g.v.monitor.count("DEVICE_DELETED", id) > had {
					return ""
				}
				return "the machine does not give the device free"
			})
		},
		fired:  func(since int64) string { return g.gone("host", since, component) },
		end:    func() { g.v.qmp("device_add", p) },
		healed: func(since int64) string { return g.there("host", since, component) },
	}
}

// hang makes a disk answer no request for data, while one waits.
func (g *rig) hang(d disk) event {
	device := g.kernelName(d.hwID)
	if strings.HasPrefix(device, "nvme") {
		device += "n1"
	}
	waiting := named("node_disk_io_now", "device", device)
	throttle := func(rate int) {
		g.v.qmp("block_set_io_throttle", map[string]any{"id": d.id, "bps": rate, "bps_rd": 0, "bps_wr": 0, "iops": 0, "iops_rd": 0, "iops_wr": 0})
	}
	return event{
		name: "hang " + d.id, device: d.id, mine: of(g.kernelName(d.hwID), d.hwID),
		begin: func() {
			g.n++
			throttle(1)
			g.v.start("/run/hang.log", "/bin/dd", "if=/dev/"+device, "of=/dev/null", "bs=4096", "count=32", fmt.Sprintf("skip=%d", 7000+64*g.n))
		},
		fired: func(since int64) string {
			if v, _ := g.newest("host", since, waiting); v < 1 {
				return "no request waits"
			}
			// Each probe has a round while the disk hangs, of which smart's is the rarest.
			if len(rounds(g.r.copy(), "smart", since)) < 1 {
				return "the probe smart has no round while the disk hangs"
			}
			return ""
		},
		end:    func() { throttle(0) },
		healed: func(since int64) string { return g.is("host", since, 0, waiting) },
	}
}

// fail reads a sector that cannot be read.
func (g *rig) fail(d disk) event {
	device := g.kernelName(d.hwID)
	if strings.HasPrefix(device, "nvme") {
		device += "n1"
	}
	info := named("node_disk_info", "device", device)
	return event{
		name: "fail " + d.id, device: d.id, mine: of(g.kernelName(d.hwID), d.hwID),
		begin: func() {
			a := g.v.try("/bin/dd", "if=/dev/"+device, "of=/dev/null", "bs=512", "count=1", fmt.Sprintf("skip=%d", brokenSector))
			if a.Code == 0 || !strings.Contains(a.Stderr, "I/O error") && !strings.Contains(a.Stderr, "Input/output error") {
				g.t.Errorf("%s: the broken sector of %s can be read: %+v", d.id, device, a)
			}
		},
		end:    func() {},
		fired:  func(since int64) string { return g.there("host", since, info) },
		healed: func(since int64) string { return g.there("host", since, info) },
	}
}

// warn makes an NVMe disk say that it fails.
func (g *rig) warn(d disk) event {
	warning := named("smartctl_device_critical_warning", "device", g.kernelName(d.hwID))
	set := func(v int) {
		g.v.qmp("qom-set", map[string]any{"path": "/machine/peripheral/" + d.id, "property": "smart_critical_warning", "value": v})
	}
	return event{
		name: "warn " + d.id, device: d.id, begin: func() { set(4) }, end: func() { set(0) },
		fired: func(since int64) string {
			if wrong := g.is("smart", since, 4, warning); wrong != "" {
				return wrong
			}
			return g.is("smart", since, 1, named("hw_status", "hw_id", d.hwID, "hw_state", "predicted_failure"))
		},
		healed: func(since int64) string { return g.is("smart", since, 0, warning) },
	}
}

// link cuts a network device's link. The driver of e1000e does not notice when QEMU does that; it is switched off instead.
func (g *rig) link(n nic) event {
	id, name := g.nic(n)
	up := named("hw_network_up", "hw_id", id)
	set := func(on bool) {
		if n.properties["driver"] == "e1000e" {
			g.v.run("/bin/ip", "link", "set", name, map[bool]string{true: "up", false: "down"}[on])
			return
		}
		g.v.qmp("set_link", map[string]any{"name": n.id, "up": on})
	}
	return event{
		name: "cut " + n.id, device: n.id, mine: of(name, id), begin: func() { set(false) }, end: func() { set(true) },
		fired:  func(since int64) string { return g.is("host", since, 0, up) },
		healed: func(since int64) string { return g.is("host", since, 1, up) },
	}
}

// nic is the hw_id of a network device and how the kernel calls it.
func (g *rig) nic(n nic) (id, name string) {
	name = strings.TrimSpace(g.v.sh("cd /sys/class/net; for d in eth*; do grep -q " + n.mac + " $d/address && echo $d; done; true"))
	return g.component(func(ls map[string]string) bool { return name != "" && ls["hw_device"] == name })["hw_id"], name
}

// chip is a sensor chip on the simulated bus.
type chip struct {
	driver, address string
	normal, hot     string // values of its register, as i2cset takes them
	degrees         float64
}

func chips() []chip {
	return []chip{
		{"lm75", "0x48", "0x8017", "0x005a", 90},
		{"lm75", "0x49", "0x0029", "0x0055", 85},
		{"jc42", "0x18", "0x9001", "0x20c6", 98}, // with the bits of the chip's own comparison
	}
}

func (c chip) series(name string) func(series) bool {
	return func(s series) bool { return s.name == name && strings.HasSuffix(s.labels["chip"], "_00"+c.address[2:]) }
}

// mine are its series: the kernel calls it by bus and address.
func (c chip) mine(s series) bool {
	suffix := regexp.MustCompile(`[-_:./]00` + c.address[2:] + `([^0-9a-f]|$)`)
	return slices.ContainsFunc([]string{s.labels["chip"], s.labels["hw_id"], s.labels["hw_parent"], s.labels["hw_name"]}, suffix.MatchString)
}

// remove takes a sensor chip from its bus and puts it back.
func (g *rig) remove(c chip) event {
	temperature := c.series("node_hwmon_temp_celsius")
	return event{
		name: "remove " + c.driver + " " + c.address, device: c.address, mine: c.mine,
		begin: func() { g.v.sh("echo " + c.address + " >/sys/bus/i2c/devices/i2c-$(cat /run/stub)/delete_device") },
		end: func() {
			g.v.sh("echo " + c.driver + " " + c.address + " >/sys/bus/i2c/devices/i2c-$(cat /run/stub)/new_device")
		},
		fired:  func(since int64) string { return g.gone("host", since, temperature) },
		healed: func(since int64) string { return g.there("host", since, temperature) },
	}
}

// heat brings a sensor above its limits.
func (g *rig) heat(c chip) event {
	register := "0"
	if c.driver == "jc42" {
		register = "5"
	}
	// The driver has the chip (-f), whose registers are memory.
	set := func(v string) { g.v.sh("i2cset -f -y $(cat /run/stub) " + c.address + " " + register + " " + v + " w") }
	ok := func(s series) bool { return s.name == "hw_status" && s.labels["hw_state"] == "ok" && c.mine(s) }
	return event{
		name: "heat " + c.driver + " " + c.address, device: c.address, begin: func() { set(c.hot) }, end: func() { set(c.normal) },
		fired: func(since int64) string {
			if wrong := g.is("host", since, c.degrees, c.series("node_hwmon_temp_celsius")); wrong != "" {
				return wrong
			}
			return g.is("host", since, 0, ok)
		},
		healed: func(since int64) string { return g.is("host", since, 1, ok) },
	}
}

// unbind takes the management controller from its driver: /dev/ipmi0 ends.
func (g *rig) unbind() event {
	up := named("up")
	device := strings.TrimSpace(g.v.sh("basename $(readlink -f /sys/class/ipmi/ipmi0/device)"))
	each := func(file string) { g.v.sh("echo " + device + " >/sys/bus/platform/drivers/ipmi_si/" + file) }
	return event{
		name: "unbind the management controller", device: controller, mine: func(s series) bool { return s.job == "ipmi" },
		begin:  func() { each("unbind") },
		end:    func() { each("bind") },
		fired:  func(since int64) string { return g.is("ipmi", since, 0, up) },
		healed: func(since int64) string { return g.is("ipmi", since, 1, up) },
	}
}

// read gives a sensor of the management controller another reading.
func (g *rig) read(s sensor, name string) event {
	reading := named(name, "name", s.name)
	value := func(raw byte) float64 { return float64(raw) * float64(s.multiplier) * math.Pow10(s.exponent) }
	return event{
		name: "another reading of " + s.name, device: controller, begin: func() { g.v.setSensor(s.number, s.raw+9) }, end: func() { g.v.setSensor(s.number, s.raw) },
		fired:  func(since int64) string { return g.is("ipmi", since, value(s.raw+9), reading) },
		healed: func(since int64) string { return g.is("ipmi", since, value(s.raw), reading) },
	}
}

// silence ends the scanning of a sensor of the management controller (Set Sensor Event Enable: IPMI 2.0, 35.10).
func (g *rig) silence(s sensor, name string) event {
	reading := named(name, "name", s.name)
	set := func(enable string) { g.v.run("/usr/sbin/ipmitool", "raw", "4", "0x28", fmt.Sprint(s.number), enable) }
	return event{
		name: "silence " + s.name, device: controller, mine: func(x series) bool {
			ambient := s.name == "Inlet Temp" && x.name == "hw_host_ambient_temperature_celsius" // which it is
			return x.job == "ipmi" && (ambient || x.labels["name"] == s.name || x.labels["hw_name"] == s.name)
		},
		begin: func() { set("0x00") }, end: func() { set("0xc0") },
		fired:  func(since int64) string { return g.gone("ipmi", since, reading) },
		healed: func(since int64) string { return g.there("ipmi", since, reading) },
	}
}
