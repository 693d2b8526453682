package host

import (
	"bytes"
	"context"
	"strconv"

	"hwsagent/probes"
)

// userHZ is the unit of the times in /proc/stat: always 1/100 s towards user space,
// whatever the kernel's own tick is (proc(5)).
const userHZ = 100

// hotplugJump is by how many seconds a CPU's idle time must fall to count as unplugged and replugged; a smaller fall is
// the kernel's known jitter.
const hotplugJump = 3.0

// cpuModes are the columns of a cpu line in /proc/stat.
var cpuModes = [...]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"}

const (
	idleColumn  = 3
	guestColumn = 8 // columns from here on have their own family: user and nice contain them
)

type cpu struct {
	stat   file
	sys    string
	cpus   map[string]*cpuTimes
	places map[string]place // by name in sysfs; CPUs do not move

	seconds, guest, isolated, online, coreThrottles, packageThrottles *probes.Family
}

// place is where a CPU is: the kernel's numbers of its package and core.
type place struct{ pkg, core string }

// cpuTimes holds the last reported times of one CPU.
type cpuTimes struct {
	// Invariant: seconds[i] never decreases while the CPU stays plugged in.
	seconds [len(cpuModes)]float64
	labels  [len(cpuModes)][]string
	seen    bool
}

func newCPU(e *environment) reader {
	return &cpu{
		stat:             file{path: e.proc("stat")},
		sys:              e.sys("devices/system/cpu"),
		cpus:             make(map[string]*cpuTimes),
		places:           make(map[string]place),
		seconds:          counter("node_cpu_seconds_total", "Time that each CPU spent in each mode."),
		guest:            counter("node_cpu_guest_seconds_total", "Time that each CPU spent running guests, by the mode that contains it."),
		isolated:         gauge("node_cpu_isolated", "1 for each CPU that the scheduler leaves alone."),
		online:           gauge("node_cpu_online", "Whether the CPU is online."),
		coreThrottles:    counter("node_cpu_core_throttles_total", "How often the core was slowed down because of heat."),
		packageThrottles: counter("node_cpu_package_throttles_total", "How often the package was slowed down because of heat."),
	}
}

func (c *cpu) read(_ context.Context, r *probes.Round) error {
	b, err := c.stat.read()
	if err != nil {
		return err
	}
	for line := range lines(b) {
		name, rest := word(line)
		id, ok := bytes.CutPrefix(name, []byte("cpu"))
		if !ok {
			break // the cpu lines come first
		}
		if len(id) > 0 { // otherwise it is the sum of all CPUs
			c.times(id, rest).add(c, r)
		}
	}
	for id, t := range c.cpus {
		if !t.seen {
			delete(c.cpus, id)
		}
		t.seen = false
	}
	c.readTopology(r)
	return nil
}

// times updates the CPU's times from its line.
func (c *cpu) times(id, columns []byte) *cpuTimes {
	t := c.cpus[string(id)]
	if t == nil {
		t = new(cpuTimes)
		for i, mode := range cpuModes {
			if i >= guestColumn {
				mode = cpuModes[i-guestColumn] // guest is part of user, guest_nice of nice
			}
			t.labels[i] = []string{"cpu", string(id), "mode", mode}
		}
		c.cpus[string(id)] = t
	}
	t.seen = true
	var now [len(cpuModes)]float64
	for i := range now {
		var column []byte
		column, columns = word(columns)
		now[i], _ = float(column) // old kernels have fewer columns
		now[i] /= userHZ
	}
	t.advance(now)
	return t
}

// advance adds the growth since the last line. The kernel sometimes lets idle and iowait fall by a few ticks, which a
// counter must not show.
func (t *cpuTimes) advance(now [len(cpuModes)]float64) {
	if t.seconds[idleColumn]-now[idleColumn] >= hotplugJump {
		t.seconds = now
		return
	}
	for i, s := range now {
		t.seconds[i] = max(t.seconds[i], s)
	}
}

func (t *cpuTimes) add(c *cpu, r *probes.Round) {
	for i, s := range t.seconds {
		f := c.seconds
		if i >= guestColumn {
			f = c.guest
		}
		r.Add(f, s, t.labels[i]...)
	}
}

// readTopology adds the CPUs' values from sysfs.
func (c *cpu) readTopology(r *probes.Round) {
	for _, id := range cpuList(text(c.sys + "/isolated")) {
		r.Add(c.isolated, 1, "cpu", id)
	}
	names, err := list(c.sys)
	if err != nil {
		return
	}
	cores, packages := make(map[place]bool), make(map[string]bool)
	for _, name := range names {
		id, ok := unit(name, "cpu")
		if !ok {
			continue
		}
		dir := c.sys + "/" + name
		if v, ok := number(dir + "/online"); ok {
			r.Add(c.online, v, "cpu", id)
		} else if id == "0" {
			// On most machines CPU 0 cannot be switched off, and then has no such file.
			if _, ok := number(c.sys + "/cpu1/online"); ok {
				r.Add(c.online, 1, "cpu", id)
			}
		}
		// All threads of a core, and all cores of a package, show the same counter.
		at, known := c.places[name]
		if !known {
			at = place{text(dir + "/topology/physical_package_id"), text(dir + "/topology/core_id")}
			if at.pkg == "" || at.core == "" {
				continue // offline since boot
			}
			c.places[name] = at
		}
		if !cores[at] {
			if v, ok := number(dir + "/thermal_throttle/core_throttle_count"); ok {
				cores[at] = true
				r.Add(c.coreThrottles, v, "core", at.core, "package", at.pkg)
			}
		}
		if !packages[at.pkg] {
			if v, ok := number(dir + "/thermal_throttle/package_throttle_count"); ok {
				packages[at.pkg] = true
				r.Add(c.packageThrottles, v, "package", at.pkg)
			}
		}
	}
}

// unit returns the number in a name such as cpu12, and whether it is such a name.
func unit(name, prefix string) (string, bool) {
	if len(name) <= len(prefix) || name[:len(prefix)] != prefix {
		return "", false
	}
	id := name[len(prefix):]
	for _, c := range id {
		if c < '0' || c > '9' {
			return "", false
		}
	}
	return id, true
}

// cpuList expands a list as the kernel writes it: 1,3-5,9.
func cpuList(s string) []string {
	var out []string
	for _, part := range bytes.Split([]byte(s), []byte(",")) {
		first, last, isRange := bytes.Cut(part, []byte("-"))
		from, err := strconv.Atoi(string(first))
		if err != nil {
			continue
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(string(last)); err != nil || to > 1<<16 {
				continue
			}
		}
		for ; from <= to; from++ {
			out = append(out, strconv.Itoa(from))
		}
	}
	return out
}
