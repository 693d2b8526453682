package host

import (
	"errors"
	"path/filepath"
	"strings"

	"hwsagent/probes/hw"
)

// newHardwareCPU reads processors: how often they throttled, the limit of their clock, and the energy that they and
// their memory used (the kernel's Documentation/power/powercap/powercap.rst), which only root can read since 2020.
func newHardwareCPU(e *environment) reader {
	return e.hardware(hardwareClass{
		dir:    e.sys("devices/system"),
		wanted: func(name string) bool { return name == "cpu" },
		query:  func(dir string) []hw.Report { return processors(dir, e.sys("class/powercap")) },
	})
}

// processors reads all packages.
func processors(dir, powercap string) []hw.Report {
	names, err := list(dir)
	if err != nil {
		return nil
	}
	var found []hw.Report
	index := make(map[string]int)    // index of a package in found
	counted := make(map[string]bool) // cores counted already, because their threads share a counter
	cores := make(map[string]float64)
	for _, name := range names {
		if _, ok := unit(name, "cpu"); !ok {
			continue
		}
		cpu := dir + "/" + name
		id := text(cpu + "/topology/physical_package_id")
		if id == "" || id == "-1" {
			continue
		}
		if _, met := index[id]; !met {
			index[id] = len(found)
			p := hw.Report{Component: hw.Component{Kind: hw.CPU, ID: "cpu:" + id, Name: "package " + id, Parent: enclosureID}}
			if v, ok := number(cpu + "/cpufreq/cpuinfo_max_freq"); ok {
				p.Add(hw.CPUSpeedLimit, v*1000, limitMax...)
			}
			if v, ok := number(cpu + "/thermal_throttle/package_throttle_count"); ok {
				p.Add(hw.CPUThrottles, v, hw.LabelThrottleScope, "package")
			}
			found = append(found, p)
		}
		core := id + "/" + text(cpu+"/topology/core_id")
		if v, ok := number(cpu + "/thermal_throttle/core_throttle_count"); ok && !counted[core] {
			counted[core] = true
			cores[id] += v
		}
	}
	for id, n := range cores {
		found[index[id]].Add(hw.CPUThrottles, n, hw.LabelThrottleScope, "core")
	}
	return addEnergy(found, powercap)
}

// addEnergy adds the energy counted by RAPL to the reports of processors, and reports for memory and for the whole
// platform. The energy of the cores is part of the package's and left out.
func addEnergy(found []hw.Report, dir string) []hw.Report {
	zones, err := list(dir)
	if err != nil && !errors.Is(err, errAbsent) {
		return found
	}
	packages := make(map[string]float64)
	for _, zone := range zones {
		rest, ok := strings.CutPrefix(zone, "intel-rapl:") // intel-rapl-mmio counts the same energy again
		joules, known := number(dir + "/" + zone + "/energy_uj")
		joules /= 1e6
		if !ok || !known {
			continue
		}
		name := text(dir + "/" + zone + "/name")
		top, _, below := strings.Cut(rest, ":")
		switch {
		case !below && name == "psys":
			p := hw.Report{Component: hw.Component{Kind: hw.Host}}
			p.Add(hw.HostEnergy, joules)
			found = append(found, p)
		case !below:
			if id, ok := packageID(name); ok {
				packages[id] += joules // a package of several dies has a zone for each
			}
		case name == "dram":
			owner, _ := packageID(text(dir + "/intel-rapl:" + top + "/name"))
			p := hw.Report{Component: hw.Component{Kind: hw.Memory, ID: "memory:" + owner, Name: "memory of package " + owner, Parent: "cpu:" + owner}}
			p.Add(hw.Energy, joules)
			found = append(found, p)
		}
	}
	for i := range found {
		if id, ok := strings.CutPrefix(found[i].ID, "cpu:"); ok {
			if joules, known := packages[id]; known {
				found[i].Add(hw.Energy, joules)
			}
		}
	}
	return found
}

// packageID returns the number in package-0 and package-0-die-1.
func packageID(zone string) (string, bool) {
	rest, ok := strings.CutPrefix(zone, "package-")
	id, _, _ := strings.Cut(rest, "-")
	return id, ok && digits(id)
}

// newHardwareMemory reads memory modules and their errors from EDAC's drivers (the kernel's
// Documentation/ABI/testing/sysfs-devices-edac), and the modules in the firmware's table, which only root may read
// (Documentation/ABI/testing/sysfs-firmware-dmi-tables).
func newHardwareMemory(e *environment) reader {
	h := e.hardware(hardwareClass{
		dir:    e.sys("devices/system/edac/mc"),
		wanted: func(name string) bool { _, ok := unit(name, "mc"); return ok },
		query:  memoryController,
	}, hardwareClass{
		dir:    e.sys("firmware/dmi"),
		wanted: func(name string) bool { return name == "tables" },
		query: func(dir string) []hw.Report {
			table := file{path: dir + "/DMI"}
			b, err := table.readUpTo(maxFirmwareTable)
			if err != nil { // without the right to read it there are no modules of the firmware
				return nil
			}
			return memoryModules(b)
		},
	})
	h.join = oneOfEach
	return h
}

// maxFirmwareTable is a bound of the firmware's table in bytes; that of a large server has about 30 KiB.
const maxFirmwareTable = 1 << 20

func memoryController(dir string) []hw.Report {
	names, err := list(dir)
	if err != nil {
		return nil
	}
	place := "edac:" + filepath.Base(dir)
	if name := text(dir + "/mc_name"); name != "" {
		place += ":" + strings.Join(strings.Fields(name), "_")
	}
	controller := hw.Report{Component: hw.Component{Kind: hw.Memory, ID: place, Name: text(dir + "/mc_name"), Parent: enclosureID}}
	// Errors that the controller cannot attribute to a module.
	addErrors(&controller, dir+"/ce_noinfo_count", dir+"/ue_noinfo_count")
	found := []hw.Report{controller}
	for _, name := range names {
		_, isModule := unit(name, "dimm")
		if _, isRank := unit(name, "rank"); isRank || isModule {
			module := dir + "/" + name
			location := strings.Join(strings.Fields(text(module+"/dimm_location")), "_")
			if location == "" {
				location = name
			}
			if p, ok := memoryModule(module, "/dimm_", "/size"); ok {
				p.ID, p.Parent = place+"/"+location, place
				found = append(found, p)
			}
		}
	}
	if len(found) > 1 {
		return found
	}
	for _, row := range names { // kernels before 3.6 have rows with channels
		if _, ok := unit(row, "csrow"); !ok {
			continue
		}
		for _, channel := range [...]string{"ch0", "ch1", "ch2", "ch3", "ch4", "ch5", "ch6", "ch7"} {
			if p, ok := memoryModule(dir+"/"+row, "/"+channel+"_", "/size_of_nothing"); ok {
				p.ID, p.Parent = place+"/"+row+"_"+channel, place
				found = append(found, p)
			}
		}
	}
	return found
}

// memoryModule reads the files that begin with prefix, and the size in MiB.
func memoryModule(dir, prefix, size string) (hw.Report, bool) {
	label := text(dir + prefix + "label")
	if label == "" {
		label = text(dir + prefix + "dimm_label")
	}
	p := hw.Report{Component: hw.Component{Kind: hw.Memory, Name: label}}
	if kind := text(dir + prefix + "mem_type"); kind != "" {
		p.Facts = []string{hw.MemoryType, kind}
	}
	if v, ok := number(dir + size); ok {
		p.Add(hw.MemorySize, v*(1<<20))
	}
	n := len(p.Readings)
	addErrors(&p, dir+prefix+"ce_count", dir+prefix+"ue_count")
	return p, len(p.Readings) > n
}

// addErrors adds corrected and uncorrected errors. An uncorrected error means that the module must be replaced; a few
// corrected ones are normal.
func addErrors(p *hw.Report, corrected, uncorrected string) {
	if v, ok := number(corrected); ok {
		p.Add(hw.Errors, v, "error_type", "corrected")
		p.Status = p.Status.Join(hw.OK)
	}
	if v, ok := number(uncorrected); ok {
		p.Add(hw.Errors, v, "error_type", "uncorrected")
		p.Status = p.Status.Join(hw.OK)
		if v > 0 {
			p.Status = p.Status.Join(hw.Failed)
		}
	}
}
