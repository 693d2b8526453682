package smart

import (
	"fmt"
	"slices"
	"strings"

	"hwsagent/probes/hw"
)

// passed returns the disk's overall self-assessment; known is false if it has none.
func (c *capture) passed() (passed, known bool) {
	if c.Status == nil || c.Status.Passed == nil {
		return false, false
	}
	return *c.Status.Passed, true
}

// Bits of an NVMe disk's critical warning (NVM Express, base specification 2.0, figure 207).
const (
	warnSpare       = 1 << 0 // spare blocks below their threshold
	warnTemperature = 1 << 1
	warnReliability = 1 << 2 // too many media errors
	warnReadOnly    = 1 << 3
	warnBackup      = 1 << 4 // the backup of the volatile memory failed
)

// status returns the disk's status. A failed self-assessment is only a prediction: the disk still works.
func (c *capture) status() hw.Status {
	passed, known := c.passed()
	if c.NVMe != nil && c.NVMe.Warning != nil {
		st, bits := hw.OK, int(*c.NVMe.Warning)
		for _, w := range [...]struct {
			bit  int
			made hw.Status
		}{
			{warnSpare, hw.PredictedFailure}, {warnTemperature, hw.Degraded}, {warnReliability, hw.Degraded | hw.PredictedFailure},
			{warnReadOnly, hw.Failed}, {warnBackup, hw.Degraded},
		} {
			if bits&w.bit != 0 {
				st = st.Join(w.made)
			}
		}
		return st
	}
	failing := c.Smartctl.ExitStatus&(bitFailing|bitPrefail) != 0 || known && !passed
	switch {
	case failing:
		return hw.OK | hw.PredictedFailure
	case known:
		return hw.OK
	}
	return hw.Unknown
}

// wwn returns the World Wide Name; "" if unknown.
func (c *capture) wwn() string {
	if c.WWN != nil && c.WWN.NAA < 16 && c.WWN.OUI < 1<<24 && c.WWN.ID < 1<<36 {
		return fmt.Sprintf("%016x", c.WWN.NAA<<60|c.WWN.OUI<<36|c.WWN.ID)
	}
	return c.LogicalUnit
}

// watched are the ATA attributes whose raw values rise before most failures: reallocated sectors, uncorrected
// errors, sectors that are pending reallocation or unreadable.
var watched = map[int]string{
	5: "reallocated_sectors", 187: "reported_uncorrectable", 197: "pending_sectors", 198: "offline_uncorrectable",
}

// component converts the disk to a report of package hw.
func (c *capture) component(device string) hw.Report {
	kind, model, firmware := "ssd", c.ModelName, c.Firmware
	if firmware == "" {
		firmware = c.Revision
	}
	switch {
	case strings.EqualFold(c.Device.Protocol, "NVMe"):
		kind = "nvme"
	case c.Rotation == nil:
		kind = ""
	case *c.Rotation > 0:
		kind = "hdd"
	}
	p := hw.Report{Status: c.status(), Component: hw.Component{Kind: hw.PhysicalDisk, Name: device, Parent: "enclosure", Facts: []string{
		hw.Vendor, c.Vendor, hw.Model, model, hw.Serial, c.Serial, hw.Firmware, firmware, hw.DiskType, kind, hw.Device, device}}}
	wwn := c.wwn()
	if kind == "nvme" {
		wwn = "" // it is a namespace's; probe host identifies the disk by its serial number
	}
	if p.ID = hw.DiskID(wwn, model, c.Serial); p.ID == "" {
		p.ID = "disk:" + device
	}
	c.readings(&p)
	return p
}

func (c *capture) readings(p *hw.Report) {
	size := c.NVMeSize
	if size == nil && c.Capacity != nil {
		size = c.Capacity.Bytes
	}
	if size != nil && *size > 0 {
		p.Add(hw.DiskSize, *size)
	}
	if v, ok := c.Temperature["current"].(float64); ok && !(v == 0 && strings.EqualFold(c.Device.Protocol, "SCSI")) { // 0 of a SAS disk: it has no sensor
		p.Add(hw.TemperatureNow, v)
	}
	if v, ok := c.limit("op_limit_max"); ok {
		p.Add(hw.TemperatureLimit, v, hw.LabelLimitType, "high.degraded")
	}
	if v, ok := c.limit("drive_trip", "critical_limit_max", "limit_max"); ok { // of SCSI, NVMe and ATA
		p.Add(hw.TemperatureLimit, v, hw.LabelLimitType, "high.critical")
	}
	for i := range c.Attributes.Table {
		a := &c.Attributes.Table[i]
		if name := watched[a.ID]; name != "" && !slices.ContainsFunc(c.Attributes.Table[:i], func(b attribute) bool { return a.ID == b.ID }) {
			p.Add(hw.DiskSMART, a.Raw.Value, hw.LabelSMARTAttribute, name)
		}
	}
	if left, ok := c.left(); ok {
		p.Add(hw.DiskEndurance, max(0, left), hw.LabelDiskState, "remaining")
	}
	if n := c.NVMe; n != nil {
		if n.MediaErrors != nil {
			p.Add(hw.Errors, *n.MediaErrors, "error_type", "media")
		}
	}
	for _, way := range [...]string{"read", "write"} {
		if v := c.SCSIErrors[way].Uncorrected; v != nil {
			p.Add(hw.Errors, *v, "error_type", way)
		}
	}
}

// lifeLeft are the ATA attributes of SSDs whose normalised value is the share of the rated life that is left, in percent, by the names
// in smartctl's database of drives.
var lifeLeft = map[string]bool{
	"Media_Wearout_Indicator": true, "SSD_Life_Left": true, "Percent_Lifetime_Remain": true, "Wear_Leveling_Count": true, "Remaining_Lifetime_Perc": true,
	"Drive_Life_Remaining%": true, "Perc_Rated_Life_Remain": true, "SSD_LifeLeft(0.01%)": true,
}

// left returns the share of the disk's endurance that remains: from what the standards say is used, or from an attribute of an SSD.
func (c *capture) left() (float64, bool) {
	used := []*float64{c.Endurance.Percent, c.SCSIUsed}
	if c.NVMe != nil {
		used = append([]*float64{c.NVMe.Used}, used...)
	}
	for _, v := range used {
		if v != nil {
			return 1 - *v/100, true
		}
	}
	if c.Rotation != nil && *c.Rotation > 0 {
		return 0, false
	}
	for i := range c.Attributes.Table {
		if a := &c.Attributes.Table[i]; lifeLeft[a.Name] && a.Value <= 100 {
			return a.Value / 100, true
		}
	}
	return 0, false
}

// limit returns the first of these temperatures that is set.
func (c *capture) limit(names ...string) (float64, bool) {
	for _, name := range names {
		if v, ok := c.Temperature[name].(float64); ok && v > 0 {
			return v, true
		}
	}
	return 0, false
}

// still reduces a component to its constant readings, for a disk that is asleep.
func still(p hw.Report) hw.Report {
	all := p.Readings
	p.Readings = nil
	for _, r := range all {
		if r.Metric == hw.DiskSize || r.Metric == hw.TemperatureLimit {
			p.Readings = append(p.Readings, r)
		}
	}
	return p
}
