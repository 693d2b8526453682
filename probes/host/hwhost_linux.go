package host

import (
	"cmp"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

// newHardwarePCI reads the errors that PCI Express devices report (the kernel's
// Documentation/ABI/testing/sysfs-bus-pci-devices-aer).
func newHardwarePCI(e *environment) reader {
	dir := e.sys("bus/pci/devices")
	var names sync.Map
	return e.hardware(hardwareClass{
		dir: dir,
		wanted: func(name string) bool {
			_, err := os.Lstat(dir + "/" + name + "/aer_dev_fatal")
			return err == nil
		},
		query: func(dir string) []hw.Report { return pciDevice(dir, e.UdevPath, &names) },
	})
}

// pciNames returns vendor and model of a device. udev's database has their names, which are read once; without udev they are numbers.
func pciNames(dir, address, udev string, names *sync.Map) (vendor, model string) {
	known, ok := names.Load(address)
	if !ok {
		u := udevProperties(udev + "/+pci:" + address)
		known = [2]string{u["ID_VENDOR_FROM_DATABASE"], u["ID_MODEL_FROM_DATABASE"]}
		names.Store(address, known)
	}
	called, _ := known.([2]string)
	return cmp.Or(called[0], text(dir+"/vendor")), cmp.Or(called[1], text(dir+"/device"))
}

// pciDevice reads one device.
func pciDevice(dir, udev string, names *sync.Map) []hw.Report {
	address := filepath.Base(dir)
	vendor, model := pciNames(dir, address, udev, names)
	device := hw.Report{Component: hw.Component{Kind: hw.PCIDevice, ID: "pci:" + address, Name: address, Parent: enclosureID, Facts: []string{
		hw.Vendor, vendor, hw.Model, model, hw.DriverName, linkName(dir + "/driver")}}}
	for _, severity := range [...]string{"correctable", "nonfatal", "fatal"} {
		if v, ok := aerTotal(text(dir + "/aer_dev_" + severity)); ok {
			device.Add(hw.Errors, v, "error_type", severity)
		}
	}
	if len(device.Readings) == 0 {
		return nil
	}
	return []hw.Report{device}
}

// aerTotal returns the total in a file of counts: a line for each error with name and number, and finally TOTAL_ERR_…
// and the sum.
func aerTotal(file string) (float64, bool) {
	for line := range strings.Lines(file) {
		if name, count, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, "TOTAL_ERR_") {
			return numeral(strings.TrimSpace(count))
		}
	}
	return 0, false
}

// hardwareHost describes the machine and adds up the findings of the other collectors.
type hardwareHost struct {
	machine *machine
	now     func() time.Time
	dmi     string
	asked   bool     // whether the firmware was read; its data is constant until the next boot
	facts   []string // nil: no data

	before time.Time // time of the previous round; zero: none
	meter  hw.Meter  // value of hw_host_energy_joules_total
	parts  map[string]float64
	watts  float64 // watts of the parts in the previous round
	psys   float64
}

func newHardwareHost(e *environment) reader {
	return &hardwareHost{machine: e.machine, now: e.now, dmi: e.sys("class/dmi/id"), parts: make(map[string]float64), psys: math.NaN()}
}

func (h *hardwareHost) read(_ context.Context, r *probes.Round) error {
	if !h.asked {
		h.asked = true
		if vendor := text(h.dmi + "/sys_vendor"); vendor != "" {
			h.facts = append(texts(h.dmi, hw.Model, "product_name", hw.Serial, "product_serial", hw.UUID, "product_uuid", hw.BIOS, "bios_version"),
				hw.Vendor, vendor, hw.EnclosureType, "Computer")
		}
	}
	if h.facts != nil {
		p := hw.Report{Component: hw.Component{Kind: hw.Enclosure, ID: enclosureID, Name: h.facts[1], Facts: h.facts}}
		p.AddTo(r)
	}
	whole := hw.Report{Component: hw.Component{Kind: hw.Host, Facts: h.facts}}
	if !math.IsInf(h.machine.margin, 0) {
		whole.Add(hw.HostHeatingMargin, h.machine.margin)
	}
	h.addPower(&whole)
	whole.AddTo(r)
	if h.facts == nil && len(whole.Readings) == 0 {
		return errAbsent
	}
	return nil
}

// addPower adds the power of the whole machine and the energy so far: measured by a meter, by the platform's own
// counter or by the battery in use; otherwise estimated as the power of processors and memory divided by
// [hw.SupplyEfficiency], which leaves out disks, fans and boards.
func (h *hardwareHost) addPower(p *hw.Report) {
	now := h.now()
	seconds := now.Sub(h.before).Seconds()
	if h.before.IsZero() || seconds <= 0 {
		seconds = 0
	}
	h.before = now
	parts := h.grown(seconds)
	platform := (h.machine.platform - h.psys) / seconds // NaN or infinite without a previous round
	h.psys = h.machine.platform
	watts, quality := math.NaN(), hw.Measured
	switch {
	case !math.IsNaN(h.machine.measured):
		watts = h.machine.measured
	case platform >= 0 && !math.IsInf(platform, 0):
		watts = platform
	case !math.IsNaN(h.machine.battery):
		watts = h.machine.battery
	case parts > 0:
		watts, quality = parts/hw.SupplyEfficiency, hw.Estimated
	}
	if math.IsNaN(watts) {
		return
	}
	p.Add(hw.HostPower, watts, hw.LabelQuality, quality)
	p.Add(hw.HostEnergy, h.meter.Add(time.Duration(seconds*float64(time.Second)), watts), hw.LabelQuality, quality)
}

// grown returns the power of processors and memory since the previous round, in watts; 0 if unknown. If a counter
// wrapped in a round, it returns the previous value.
func (h *hardwareHost) grown(seconds float64) float64 {
	sum := 0.0
	for id, joules := range h.machine.parts {
		before, ok := h.parts[id]
		switch {
		case ok && joules < before:
			sum = math.NaN()
		case ok && seconds > 0:
			sum += (joules - before) / seconds
		}
	}
	clear(h.parts)
	for id, joules := range h.machine.parts {
		h.parts[id] = joules
	}
	h.watts = nanIs(sum, h.watts)
	return h.watts
}
