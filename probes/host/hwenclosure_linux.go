package host

import (
	"path/filepath"

	"hwsagent/probes/hw"
)

// bayStates are the states of a part of an enclosure (drivers/misc/enclosure.c enclosure_status, by SES-3 7.2.3). A bay without a disk
// is not listed.
var bayStates = map[string]hw.Status{
	"OK": hw.OK, "non-critical": hw.Degraded, "critical": hw.Failed, "unrecoverable": hw.Failed, "unsupported": hw.Unknown, "unknown": hw.Unknown, "unavailable": hw.Unknown,
}

// enclosure reads an enclosure of disks that the driver ses knows, and its bays.
func (p places) enclosure(dir string) []hw.Report {
	id := text(dir + "/id") // the logical identifier of the enclosure
	if id == "" || id == "0x0" {
		id = p.of(dir + "/device")
	}
	if id == "" {
		return nil
	}
	box := hw.Report{Component: hw.Component{Kind: hw.Enclosure, ID: "ses:" + id, Name: "enclosure " + filepath.Base(dir), Parent: enclosureID, Facts: append(
		texts(dir+"/device", hw.Vendor, "vendor", hw.Model, "model", hw.Firmware, "rev"), hw.EnclosureType, "storage")}}
	all := []hw.Report{box}
	children, _ := list(dir) // on an error there are no bays
	for _, name := range children {
		bay := dir + "/" + name
		word := text(bay + "/status")
		if kind := text(bay + "/type"); kind != "device" && kind != "array device" || word == "" || word == "not installed" {
			continue
		}
		one := hw.Report{Status: bayStates[word], Component: hw.Component{Kind: hw.Module, ID: box.ID + "/" + clean(name), Name: name, Parent: box.ID}}
		if one.Status == 0 {
			one.Status = hw.Unknown
		}
		if disks, err := list(bay + "/device/block"); err == nil && len(disks) > 0 {
			one.Facts = []string{hw.Device, disks[0], hw.Model, text(bay + "/device/model")}
		}
		for _, light := range [...]string{"fault", "locate"} {
			if v, ok := number(bay + "/" + light); ok {
				one.Add(hw.BayLight, min(v, 1), hw.LabelLight, light)
			}
		}
		if v, ok := number(bay + "/fault"); ok && v > 0 {
			one.Status = one.Status.Join(hw.Degraded)
		}
		all = append(all, one)
	}
	return all
}
