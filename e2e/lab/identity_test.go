//go:build linux && amd64

package lab

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// kernelNames finds the kernel's name of a disk or a network device in a label's value: what stands before it, the name, and the
// partition or namespace.
var kernelNames = regexp.MustCompile(`^(|.*_)(sd[a-z]+|nvme[0-9]+|eth[0-9]+)(|[0-9]+|n[0-9]+)$`)

// deviceLabels are the labels whose value may be the kernel's name of a device.
func deviceLabels() []string { return []string{"device", "chip", "hw_device", "hw_name"} }

// owner says which device has a kernel's name from a time on.
type owner struct {
	from int64
	id   string // its hw_id
}

// owners are the devices that have had each of the kernel's names, oldest first, by what the probe host says of its components.
func owners(all map[string]series) map[string][]owner {
	out := map[string][]owner{}
	for _, s := range all {
		name, id := s.labels["hw_device"], s.labels["hw_id"]
		if s.name != "hw_component_info" || s.job != "host" || name == "" {
			continue
		}
		for _, x := range s.samples {
			if !x.stale() {
				out[name] = append(out[name], owner{x.at, id})
			}
		}
	}
	for _, o := range out {
		slices.SortFunc(o, func(a, b owner) int { return int(a.from - b.from) })
	}
	return out
}

// byIdentity gives each sample to the device that it is about. The kernel gives the name of a device that was unplugged to the
// next one that comes, so a disk that is back may have another name than before, and its series other labels. In the result
// labels have the hw_id of the device in place of the kernel's name.
func byIdentity(all map[string]series) map[string]series {
	owned := owners(all)
	out, split := make(map[string]series, len(all)), map[string]series{}
	for key, s := range all {
		if !slices.ContainsFunc(deviceLabels(), func(l string) bool { return kernelNames.MatchString(s.labels[l]) }) {
			out[key] = s
			continue
		}
		for _, x := range s.samples {
			ls := identified(s.labels, owned, x.at)
			key := s.name + " " + s.job
			for _, l := range slices.Sorted(maps.Keys(ls)) {
				key += " " + l + "=" + ls[l]
			}
			to, known := split[key]
			if !known {
				to = series{name: s.name, job: s.job, labels: ls}
			}
			to.samples = append(to.samples, x)
			split[key] = to
		}
	}
	for key, s := range split {
		slices.SortStableFunc(s.samples, func(a, b sample) int { return int(a.at - b.at) })
		out[key] = s
	}
	return out
}

// identified are the labels of a sample with hw_ids in place of the kernel's names at its time. The numbers of a block device come
// from its name, and go.
func identified(ls map[string]string, owned map[string][]owner, at int64) map[string]string {
	out := maps.Clone(ls)
	for _, l := range deviceLabels() {
		m := kernelNames.FindStringSubmatch(out[l])
		if m == nil || len(owned[m[2]]) == 0 {
			continue
		}
		o := owned[m[2]]
		i, exact := slices.BinarySearchFunc(o, at, func(o owner, at int64) int { return int(o.from - at) })
		if !exact {
			i = max(i-1, 0)
		}
		out[l] = m[1] + o[i].id + m[3]
		delete(out, "major")
		delete(out, "minor")
	}
	return out
}

// TestByIdentity: the series of a device that comes back with another name go on, and those of a name that passes to another
// device are that device's.
func TestByIdentity(t *testing.T) {
	info := func(name, id string, at ...int64) series {
		s := series{name: "hw_component_info", job: "host", labels: map[string]string{"hw_device": name, "hw_name": name, "hw_id": id}}
		for _, at := range at {
			s.samples = append(s.samples, sample{at: at, v: 1})
		}
		return s
	}
	reads := func(name, minor string, at ...int64) series {
		s := info(name, "", at...)
		s.name, s.labels = "node_disk_reads_completed_total", map[string]string{"device": name, "minor": minor}
		return s
	}
	got := byIdentity(map[string]series{
		"1": info("sdd", "usb", 1000, 2000),
		"2": info("sdd", "scsi", 5000, 6000),
		"3": info("sde", "scsi", 1000),
		"4": info("sde", "usb", 5000, 6000),
		"5": reads("sdd1", "49", 1000, 2000, 5000),
		"6": reads("sde1", "65", 1000, 6000),
		"7": {name: "up", job: "host", samples: []sample{{at: 1000, v: 1}}},
	})
	for _, tc := range []struct {
		name, device string
		at           []int64
	}{
		{"hw_component_info", "usb", []int64{1000, 2000, 5000, 6000}},
		{"hw_component_info", "scsi", []int64{1000, 5000, 6000}},
		{"node_disk_reads_completed_total", "usb1", []int64{1000, 2000, 6000}},
		{"node_disk_reads_completed_total", "scsi1", []int64{1000, 5000}},
		{"up", "", []int64{1000}},
	} {
		var at []int64
		for _, s := range got {
			if s.name == tc.name && s.labels["device"]+s.labels["hw_device"] == tc.device {
				for _, x := range s.samples {
					at = append(at, x.at)
				}
			}
		}
		if !slices.Equal(at, tc.at) {
			t.Errorf("%s of %q has samples at %v, want %v", tc.name, tc.device, at, tc.at)
		}
	}
	if len(got) != 5 {
		t.Errorf("there are %d series, want 5: %s", len(got), strings.Join(slices.Sorted(maps.Keys(got)), "; "))
	}
}
