package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// hardwareGPUs reads the GPUs of the kernel's drivers amdgpu, i915 and xe. Their files are described in the kernel's
// Documentation/gpu/amdgpu (thermal.rst, driver-misc.rst, ras.rst), in Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon and
// sysfs-driver-intel-xe-hwmon, and in drivers/gpu/drm/xe/xe_gt_idle.c. A GPU of NVIDIA's driver has none of them: the probe nvidia reads
// it, and this collector leaves it out. Power and energy come from the GPU's sensor chip, whose other sensors are reported by hw_sensors as
// parts of the GPU.
type hardwareGPUs struct {
	places
	machine *machine
	chips   *sensorChips
	now     func() time.Time
	dir     string // class/drm
	udev    string
	names   *sync.Map // of PCI devices, by address
	guard   guard[*gpu]
	before  map[string]*gpuPast // by ID
}

// gpu is what one GPU's directory says.
type gpu struct {
	hw.Report
	idle map[string]float64 // milliseconds that each of its parts has been idle, by directory
}

// gpuPast is what is remembered of a GPU, to tell its power and load from counters, and its energy from its power.
type gpuPast struct {
	hw.Meter
	at     time.Time
	joules float64
	idle   map[string]float64
}

func newHardwareGPUs(e *environment) reader {
	p := newPlaces(e.SysPath)
	e.chips.origin = p.chipOrigin
	return &hardwareGPUs{places: p, machine: e.machine, chips: e.chips, now: e.now, dir: e.sys("class/drm"), udev: e.UdevPath, names: new(sync.Map),
		guard: guard[*gpu]{limit: e.limit, panics: e.panics}}
}

// gpuDriver returns the driver of the PCI device at that path below sysfs' devices if it is one of those that are read here, else "".
func (p places) gpuDriver(rel string) string {
	if isPCIAddress(filepath.Base(rel)) {
		switch driver := linkName(p.devices + rel + "/driver"); driver {
		case "amdgpu", "i915", "xe":
			return driver
		}
	}
	return ""
}

// gpuID is the ID of a GPU by the path of its PCI device; hw_pci and the probe kernel give the device the same.
func gpuID(rel string) string { return "pci:" + filepath.Base(rel) }

func (h *hardwareGPUs) read(ctx context.Context, r *probes.Round) error {
	names, err := list(h.dir)
	if err != nil {
		return err
	}
	var ids, dirs []string
	for _, name := range names {
		if _, ok := unit(name, "card"); !ok { // a connector, or the same device's node for rendering
			continue
		}
		if rel := h.real(h.dir + "/" + name + "/device"); h.gpuDriver(rel) != "" {
			ids, dirs = append(ids, gpuID(rel)), append(dirs, h.dir+"/"+name)
		}
	}
	if len(dirs) == 0 {
		return errAbsent
	}
	var errs []error
	chips, err := h.chips.get(ctx)
	if err != nil && !errors.Is(err, errAbsent) {
		errs = append(errs, fmt.Errorf("power and energy: %w", err))
	}
	now, past := h.now(), make(map[string]*gpuPast)
	for i, o := range h.guard.all(ctx, dirs, h.card) {
		if o.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", dirs[i], o.err))
			past[ids[i]] = h.before[ids[i]] // its meter continues
			continue
		}
		past[ids[i]] = o.value.measure(now, h.before[ids[i]], chips)
		h.machine.add(r, &o.value.Report)
	}
	h.before = past
	return errors.Join(errs...)
}

// card reads one directory of class/drm.
func (h *hardwareGPUs) card(dir string) *gpu {
	rel := h.real(dir + "/device")
	device, address := h.devices+rel, filepath.Base(rel)
	vendor, model := pciNames(device, address, h.udev, h.names)
	g := &gpu{idle: make(map[string]float64), Report: hw.Report{Component: hw.Component{Kind: hw.GPU, ID: gpuID(rel), Name: filepath.Base(dir), Parent: enclosureID, Facts: append(
		texts(device, hw.Serial, "serial_number", hw.UUID, "unique_id", hw.Firmware, "vbios_version"),
		hw.Vendor, vendor, hw.Model, cmp.Or(text(device+"/product_name"), model), hw.DriverName, h.gpuDriver(rel), hw.Device, address)}}}
	if v, ok := number(device + "/gpu_busy_percent"); ok {
		g.Add(hw.GPUUtilization, v/100, hw.LabelGPUTask, "general")
	}
	total, sized := number(device + "/mem_info_vram_total")
	used, ok := number(device + "/mem_info_vram_used")
	if sized && total > 0 {
		g.Add(hw.GPUMemoryLimit, total)
		if ok {
			g.Add(hw.GPUMemoryUsage, used)
			g.Add(hw.GPUMemoryUtilization, used/total)
		}
	}
	if v, ok := number(device + "/pcie_replay_count"); ok {
		g.Add(hw.Errors, v, "error_type", "pcie_replay")
	}
	g.addRAS(device + "/ras")
	for _, pattern := range [...]string{dir + "/gt/gt*/rc6_residency_ms", device + "/tile*/gt*/gtidle/idle_residency_ms"} { // i915, xe
		files, _ := filepath.Glob(pattern) // the pattern is valid
		for _, file := range files {
			if v, ok := number(file); ok {
				g.idle[file] = v
			}
		}
	}
	return g
}

// addRAS adds the sums of the errors that the blocks of an AMD GPU have counted: a file for each block, such as umc_err_count for the
// memory, with the lines "ue: 0" for uncorrected and "ce: 1" for corrected errors.
func (g *gpu) addRAS(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil { // most GPUs have none
		return
	}
	sums := make(map[string]float64)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "_err_count") {
			continue
		}
		for line := range strings.Lines(text(dir + "/" + e.Name())) {
			kind, count, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if v, ok := numeral(count); ok && v >= 0 {
				sums[kind] += v
			}
		}
	}
	for _, kind := range [...][2]string{{"ce", "corrected"}, {"ue", "uncorrected"}} {
		if v, ok := sums[kind[0]]; ok {
			g.Add(hw.Errors, v, "error_type", kind[1])
		}
	}
}

// measure adds power, energy and, where the driver only counts the time in which the GPU is idle, its load since the last round. It returns
// what the next round needs.
func (g *gpu) measure(now time.Time, before *gpuPast, chips []chipSensors) *gpuPast {
	next := &gpuPast{at: now, joules: -1, idle: g.idle}
	gap := time.Duration(0)
	if before != nil {
		next.Meter = before.Meter
		gap = now.Sub(before.at)
	}
	watts, limit, joules := gpuPower(g.ID, chips)
	if joules >= 0 {
		next.joules = joules
		g.Add(hw.Energy, joules)
		if watts < 0 && before != nil && before.joules >= 0 && joules >= before.joules && gap > 0 {
			watts = (joules - before.joules) / gap.Seconds()
		}
	} else if watts >= 0 {
		g.Add(hw.Energy, next.Meter.Add(gap, watts))
	}
	if watts >= 0 {
		g.Add(hw.Power, watts)
	}
	if limit > 0 { // 0: no limit is set
		g.Add(hw.PowerLimit, limit, limitMax...)
	}
	if busy, ok := next.busy(before, gap); ok {
		g.Add(hw.GPUUtilization, busy, hw.LabelGPUTask, "general")
	}
	return next
}

// busy returns the share of the time since the last round in which the busiest part of the GPU was not idle.
func (next *gpuPast) busy(before *gpuPast, gap time.Duration) (most float64, ok bool) {
	if before == nil || gap <= 0 {
		return 0, false
	}
	for part, idle := range next.idle {
		if was, known := before.idle[part]; known && idle >= was { // less: the driver was loaded anew
			most, ok = max(most, 1-(idle-was)*float64(time.Millisecond)/float64(gap)), true
		}
	}
	return most, ok
}

// gpuPower returns what the sensor chip of a GPU says, or -1: its power, the limit of its power, and its energy. Intel's drivers have no
// power; they number the card's sensors before those of the package.
func gpuPower(id string, chips []chipSensors) (watts, limit, joules float64) {
	watts, limit, joules = -1, -1, -1
	first := func(to *float64, s *sensor, names ...string) {
		for _, name := range names {
			if v, ok := s.number(name, 1e6); ok && *to <= 0 && v >= 0 {
				*to = v
			}
		}
	}
	for i := range chips {
		if c := &chips[i]; c.origin.gpu && c.origin.parent == id {
			for n := range c.sensors {
				switch s := &c.sensors[n]; s.kind {
				case "power":
					first(&watts, s, "average", "input")
					first(&limit, s, "max", "cap")
				case "energy":
					first(&joules, s, "input")
				}
			}
		}
	}
	return watts, limit, joules
}
