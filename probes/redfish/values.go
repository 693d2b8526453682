package redfish

import (
	"math"
	"strconv"
	"strings"
	"time"

	"hwsagent/probes/hw"
)

// value maps a number of a resource to a reading of its component.
type value struct {
	path       string
	metric     hw.Metric
	scale      float64
	attributes []string
}

var (
	highest     = []string{hw.LabelLimitType, "max"}
	received    = []string{"network_io_direction", "receive"}
	transmitted = []string{"network_io_direction", "transmit"}
	remaining   = []string{hw.LabelDiskState, "remaining"}
	input       = []string{hw.LabelLocation, "input"}
	secondRotor = []string{hw.LabelLocation, "secondary"}
)

func kindOfError(kind string, more ...string) []string {
	return append([]string{"error_type", kind}, more...)
}

// values maps numbers in the resources of each role, and in those attached to them, to readings of the component. If
// several give one reading, the first existing one counts. Below Oem are the schemas of vendors: Dell, HPE (and Hp
// before), Lenovo, Supermicro, NVIDIA.
var values = map[string][]value{
	"": {{"PowerLimitWatts.SetPoint", hw.PowerLimit, 1, highest}},
	"processor": {
		{"OperatingSpeedMHz", hw.CPUSpeed, 1e6, nil}, {"AverageFrequencyMHz", hw.CPUSpeed, 1e6, nil}, {"Oem.Lenovo.CurrentClockSpeedMHz", hw.CPUSpeed, 1e6, nil},
		{"MaxSpeedMHz", hw.CPUSpeedLimit, 1e6, highest}, {"MaxTDPWatts", hw.PowerLimit, 1, highest}, {"TDPWatts", hw.PowerLimit, 1, highest},
		{"TemperatureCelsius", hw.TemperatureNow, 1, nil}, {"ConsumedPowerWatt", hw.Power, 1, nil},
		{"CacheMetricsTotal.LifeTime.CorrectableECCErrorCount", hw.Errors, 1, kindOfError("corrected")}, {"CacheMetricsTotal.LifeTime.UncorrectableECCErrorCount", hw.Errors, 1, kindOfError("uncorrected")},
		{"CorrectableCoreErrorCount", hw.Errors, 1, kindOfError("core_corrected")}, {"UncorrectableCoreErrorCount", hw.Errors, 1, kindOfError("core_uncorrected")},
		{"CorrectableOtherErrorCount", hw.Errors, 1, kindOfError("other_corrected")}, {"UncorrectableOtherErrorCount", hw.Errors, 1, kindOfError("other_uncorrected")},
		{"PCIeErrors.CorrectableErrorCount", hw.Errors, 1, kindOfError("pcie_correctable")}, {"PCIeErrors.NonFatalErrorCount", hw.Errors, 1, kindOfError("pcie_nonfatal")}, {"PCIeErrors.FatalErrorCount", hw.Errors, 1, kindOfError("pcie_fatal")},
		{"MemorySummary.TotalMemorySizeMiB", hw.GPUMemoryLimit, 1 << 20, nil},
		{"Oem.Nvidia.SMUtilizationPercent", hw.GPUUtilization, 0.01, []string{hw.LabelGPUTask, "general"}}, {"Oem.Nvidia.NVDecUtilizationPercent", hw.GPUUtilization, 0.01, []string{hw.LabelGPUTask, "decoder"}},
		{"Oem.Nvidia.PCIeRXBytes", hw.GPUIO, 1, received}, {"Oem.Nvidia.PCIeTXBytes", hw.GPUIO, 1, transmitted},
	},
	"memory": {
		{"CapacityMiB", hw.MemorySize, 1 << 20, nil}, {"SizeMB", hw.MemorySize, 1 << 20, nil},
		{"LifeTime.CorrectableECCErrorCount", hw.Errors, 1, kindOfError("corrected")}, {"LifeTime.UncorrectableECCErrorCount", hw.Errors, 1, kindOfError("uncorrected")},
		{"CorrectedVolatileErrorCount", hw.Errors, 1, kindOfError("volatile_corrected")}, {"CorrectedPersistentErrorCount", hw.Errors, 1, kindOfError("persistent_corrected")},
	},
	"drive": {
		{"CapacityBytes", hw.DiskSize, 1, nil}, {"CapacityMiB", hw.DiskSize, 1 << 20, nil}, {"PredictedMediaLifeLeftPercent", hw.DiskEndurance, 0.01, remaining},
		{"Oem.Supermicro.Temperature", hw.TemperatureNow, 1, nil}, {"Oem.Hpe.CurrentTemperatureCelsius", hw.TemperatureNow, 1, nil}, {"CurrentTemperatureCelsius", hw.TemperatureNow, 1, nil},
		{"NVMeSMART.CompositeTemperatureCelsius", hw.TemperatureNow, 1, nil}, {"NVMeSMART.MediaAndDataIntegrityErrors", hw.Errors, 1, kindOfError("media")},
		{"UncorrectableIOReadErrorCount", hw.Errors, 1, kindOfError("read")}, {"UncorrectableIOWriteErrorCount", hw.Errors, 1, kindOfError("write")},
		{"CorrectableIOReadErrorCount", hw.Errors, 1, kindOfError("read_corrected")}, {"CorrectableIOWriteErrorCount", hw.Errors, 1, kindOfError("write_corrected")},
		{"BadBlockCount", hw.Errors, 1, kindOfError("bad_block")},
	},
	"supply": {
		{"PowerCapacityWatts", hw.PowerSupplyLimit, 1, highest}, {"CapacityWatts", hw.PowerSupplyLimit, 1, highest},
		{"PowerOutputWatts", hw.PowerSupplyUsage, 1, nil}, {"LastPowerOutputWatts", hw.PowerSupplyUsage, 1, nil}, {"Oem.Hpe.AveragePowerOutputWatts", hw.PowerSupplyUsage, 1, nil},
		{"PowerInputWatts", hw.Power, 1, nil}, {"LineInputVoltage", hw.VoltageNow, 1, input},
	},
	"battery": {{"DischargeCycles", hw.BatteryCycles, 1, nil}},
	"fan":     {{"RatedSpeedRPM", hw.FanSpeedLimit, 1, highest}, {"RatedSecondarySpeedRPM", hw.FanSpeedLimit, 1, []string{hw.LabelLocation, "secondary", hw.LabelLimitType, "max"}}},
	"pump":    {{"ServiceHours", hw.ServiceTime, 3600, nil}},
	"device":  {{"ServiceHours", hw.ServiceTime, 3600, nil}, {"RatedServiceHours", hw.ServiceTimeLimit, 3600, highest}},
	"controller": {
		{"CorrectableECCErrorCount", hw.Errors, 1, kindOfError("corrected")}, {"UncorrectableECCErrorCount", hw.Errors, 1, kindOfError("uncorrected")},
		{"CorrectableParityErrorCount", hw.Errors, 1, kindOfError("parity_corrected")}, {"UncorrectableParityErrorCount", hw.Errors, 1, kindOfError("parity_uncorrected")},
	},
	"port": {
		{"CurrentSpeedGbps", hw.NetworkBandwidthLimit, 1e9 / 8, nil}, {"CurrentLinkSpeedMbps", hw.NetworkBandwidthLimit, 1e6 / 8, nil}, {"SpeedMbps", hw.NetworkBandwidthLimit, 1e6 / 8, nil},
		{"RXBytes", hw.NetworkIO, 1, received}, {"TXBytes", hw.NetworkIO, 1, transmitted},
		{"Networking.RXFrames", hw.NetworkPackets, 1, received}, {"Networking.TXFrames", hw.NetworkPackets, 1, transmitted},
		{"RXErrors", hw.Errors, 1, kindOfError("packet", received...)}, {"TXErrors", hw.Errors, 1, kindOfError("packet", transmitted...)},
		{"Networking.RXDiscards", hw.Errors, 1, kindOfError("discard", received...)}, {"Networking.TXDiscards", hw.Errors, 1, kindOfError("discard", transmitted...)},
	},
	"outlet":   {{"RatedCurrentAmps", hw.CurrentLimit, 1, highest}},
	"oldPower": {{"PowerLimit.LimitInWatts", hw.PowerLimit, 1, highest}},
}

// likeRole maps roles to others with the same numbers.
var likeRole = map[string]string{"oldSupply": "supply", "ethernet": "port", "processorPort": "port"}

// positive reports whether a value of 0 means unknown: a size or a limit.
func positive(m hw.Metric) bool {
	switch m {
	case hw.MemorySize, hw.DiskSize, hw.CPUSpeed, hw.CPUSpeedLimit, hw.PowerLimit, hw.PowerSupplyLimit, hw.NetworkBandwidthLimit, hw.GPUMemoryLimit, hw.FanSpeedLimit, hw.CurrentLimit, hw.ServiceTimeLimit:
		return true
	}
	return false
}

// moving reports whether readings of the metric change all the time, so that an old one must not look like one of now.
func moving(m hw.Metric) bool {
	switch m {
	case hw.TemperatureNow, hw.Power, hw.Errors, hw.NetworkUp, hw.NetworkIO, hw.NetworkPackets, hw.CPUSpeed, hw.GPUIO, hw.GPUUtilization:
		return true
	}
	return false
}

// moves reports whether a resource of that role, or one within a collection of it, has such a reading.
func moves(role string, o object) bool {
	for _, member := range o.list("Members") {
		if moves(role, member) {
			return true
		}
	}
	if like := likeRole[role]; like != "" {
		role = like
	}
	for i := range values[role] {
		if v := &values[role][i]; moving(v.metric) {
			if _, ok := o.number(v.path); ok {
				return true
			}
		}
	}
	return o.text("LinkStatus") != ""
}

// values adds the numbers of o, which is n or attached to it, to n's report.
func (m *mapper) values(n *node, o object, p *hw.Report) {
	name := n.name
	if like := likeRole[name]; like != "" {
		name = like
	}
	for _, list := range [...][]value{values[name], values[""]} {
		for i := range list {
			v := &list[i]
			if x, ok := o.number(v.path); ok && (x >= 0 || v.metric == hw.TemperatureNow) && !(positive(v.metric) && x == 0) {
				addOnce(p, v.metric, x*v.scale, v.attributes...)
			}
		}
	}
	switch strings.ToLower(o.text("LinkStatus")) {
	case "linkup", "up":
		addOnce(p, hw.NetworkUp, 1)
	case "linkdown", "down", "nolink", "starting", "training":
		addOnce(p, hw.NetworkUp, 0)
	}
	if p.Kind == hw.PhysicalDisk {
		used(o, p)
	}
	if p.Kind == hw.Network {
		transceivers(o, p)
	}
	if p.Kind == hw.LogicalDisk {
		m.volume(o, p)
	}
	if n.name == "memory" {
		for alarm := range o.sub("HealthData.AlarmTrips") {
			if on, _ := o.at("HealthData.AlarmTrips." + alarm).(bool); on {
				p.Status = p.Status.Join(hw.Degraded)
			}
		}
	}
}

// used adds the endurance of a disk where only the used part of it is reported: by iLO and NVMe's SMART, which exceeds 100 % in the end. It also
// adds the temperatures of NVMe's single sensors.
func used(o object, p *hw.Report) {
	for _, key := range [...]string{"SSDEnduranceUtilizationPercentage", "NVMeSMART.PercentageUsed"} {
		if v, ok := o.number(key); ok {
			addOnce(p, hw.DiskEndurance, max(0, 1-v/100), remaining...)
		}
	}
	all, _ := o.at("NVMeSMART.TemperatureSensorsCelsius").([]any)
	for i, v := range all[:min(len(all), maxNVMeSensors)] {
		if x, ok := number(v); ok {
			addOnce(p, hw.TemperatureNow, x, hw.LabelLocation, "sensor_"+strconv.Itoa(i+1))
		}
	}
}

// maxNVMeSensors is the number of temperature sensors in NVMe's SMART log (NVM Express Base Specification, Log Page Identifier 02h).
const maxNVMeSensors = 8

// maxLanes bounds the lanes of a port; Redfish's largest ports have 16.
const maxLanes = 32

// transceivers adds the light, current and voltage of a port's transceivers (schema PortMetrics), under the locations that probe host gives
// them. The lanes of all transceivers are counted from 1; the totals of a transceiver with several lanes are left out.
func transceivers(o object, p *hw.Report) {
	var lanes []object
	all := o.list("Transceivers")
	for i, t := range all[:min(len(all), maxLanes)] {
		if v, ok := t.number("SupplyVoltage"); ok {
			addOnce(p, hw.VoltageNow, v, located("", "transceiver", i, len(all))...)
		}
		if own := t.list("ByLane"); len(own) > 0 {
			lanes = append(lanes, own...)
		} else {
			lanes = append(lanes, t)
		}
	}
	for i, l := range lanes[:min(len(lanes), maxLanes)] {
		for _, c := range [...]struct{ key, way string }{{"TXOutputPowerMilliWatts", "transmit"}, {"RXInputPowerMilliWatts", "receive"}} {
			if mw, ok := l.number(c.key); ok && mw > 0 { // without light there is no logarithm, and no sample
				addOnce(p, hw.OpticalPower, 10*math.Log10(mw), located(c.way, c.way, i, len(lanes))...)
			}
		}
		if ma, ok := l.number("TXBiasCurrentMilliAmps"); ok {
			addOnce(p, hw.CurrentNow, ma/1000, located("transmit", "transmit", i, len(lanes))...)
		}
	}
}

// located returns the attributes of the reading with that index: the location "only" if there is one such reading, "each" with a number if there
// are several.
func located(only, each string, i, of int) []string {
	switch {
	case of > 1:
		return []string{hw.LabelLocation, each + "." + strconv.Itoa(i+1)}
	case only == "":
		return nil
	}
	return []string{hw.LabelLocation, only}
}

func (m *mapper) volume(o object, p *hw.Report) {
	level := []string{hw.LabelRAIDLevel, o.first("RAIDType", "Raid", "VolumeType")}
	for _, size := range [...]struct {
		path  string
		scale float64
	}{{"CapacityBytes", 1}, {"Capacity.Data.AllocatedBytes", 1}, {"CapacityMiB", 1 << 20}} {
		if v, ok := o.number(size.path); ok && v > 0 {
			addOnce(p, hw.LogicalDiskLimit, v*size.scale, level...)
		}
	}
	if v, ok := o.number("Capacity.Data.ConsumedBytes"); ok {
		addOnce(p, hw.LogicalDiskUsage, v, append(level, hw.LabelVolumeState, "used")...)
	}
}

// special adds values that only components of one role have.
func (m *mapper) special(n *node, p *hw.Report) {
	o := n.object
	switch n.name {
	case "chassis":
		if s := o.text("PhysicalSecurity.IntrusionSensor"); s != "" {
			st := hw.Failed
			if strings.EqualFold(s, "Normal") {
				st = hw.OK
			}
			m.add(nil, &hw.Report{Status: st, Component: hw.Component{Kind: hw.Intrusion, ID: p.ID + "/PhysicalSecurity", Name: p.Name + " intrusion sensor", Parent: p.ID}})
		}
	case "storage":
		if b := o.sub("Oem.Dell.DellControllerBattery"); b != nil {
			m.add(nil, &hw.Report{Status: healthOf(b.text("PrimaryStatus")), Component: hw.Component{Kind: hw.Battery, ID: p.ID + "/DellControllerBattery", Name: b.first("Name", "Id"), Parent: p.ID}})
		}
	case "oldPower":
		v, ok := o.number("PowerConsumedWatts")
		if !ok {
			v, ok = o.number("Oem.Hp.PowerConsumedWatts")
		}
		switch {
		case !ok:
		case m.host != nil && n.chassis() == m.host && addOnce(&m.machine, hw.HostPower, v, hw.LabelQuality, hw.Measured):
		default:
			addOnce(p, hw.Power, v)
		}
	case "oldTemperature", "oldFan", "oldVoltage":
		m.oldSensor(n, p)
	}
}

// severities maps the words of the schema LogEntry.
var severities = map[string]string{"ok": "ok", "warning": "warning", "critical": "critical"}

// entries adds the number of a log's entries, and the time of the newest of each severity among the entries in the
// service's first answer.
func entries(o object, p *hw.Report) {
	members := o.list("Members")
	n, ok := o.number("Members@odata.count")
	if !ok {
		n = float64(len(members))
	}
	addOnce(p, hw.LogEntries, n)
	newest := make(map[string]time.Time)
	for _, e := range members {
		at, err := time.Parse(time.RFC3339, e.text("Created"))
		if s := severities[strings.ToLower(e.text("Severity"))]; err == nil && s != "" && at.After(newest[s]) {
			newest[s] = at
		}
	}
	for _, s := range [...]string{"ok", "warning", "critical"} {
		if at := newest[s]; !at.IsZero() {
			addOnce(p, hw.LogNewest, float64(at.UnixMilli())/1000, hw.LabelSeverity, s)
		}
	}
}
