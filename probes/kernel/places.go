package kernel

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"hwsagent/probes/hw"
)

// places knows the IDs of the machine's disks, which are those of the probe host.
type places struct {
	sys   string
	disks map[string]string // by sda, nvme0, ata3; those that have gone stay: an error may be why
}

func newPlaces(sys string) places { return places{sys, make(map[string]string)} }

// maxDisks bounds the disks that are remembered.
const maxDisks = 4096

// look reads the names of the disks.
func (p *places) look() {
	for _, dir := range p.list("block", "sd*") {
		device := dir + "/device"
		id := hw.DiskID(text(device+"/wwid"), text(device+"/model"), text(dir+"/serial"))
		p.remember(filepath.Base(dir), id)
		if path, err := filepath.EvalSymlinks(dir); err == nil {
			for element := range strings.SplitSeq(path, "/") {
				if ataName.MatchString(element) {
					p.remember(element, id)
				}
			}
		}
	}
	for _, dir := range p.list("class/nvme", "nvme*") {
		p.remember(filepath.Base(dir), hw.DiskID("", text(dir+"/model"), text(dir+"/serial")))
	}
}

func (p *places) list(class, names string) []string {
	found, err := filepath.Glob(filepath.Join(p.sys, class, names))
	if err != nil { // the pattern is well formed
		return nil
	}
	return found
}

func (p *places) remember(name, id string) {
	if _, there := p.disks[name]; id != "" && (there || len(p.disks) < maxDisks) {
		p.disks[name] = id
	}
}

var (
	ataName   = regexp.MustCompile(`^ata[0-9]+$`)
	scsiName  = regexp.MustCompile(`^(sd[a-z]+)[0-9]*$`)
	nvmeName  = regexp.MustCompile(`^(nvme[0-9]+)(?:c[0-9]+)?(?:n[0-9]+(?:p[0-9]+)?)?$`)
	otherName = regexp.MustCompile(`^(?:vd|xvd|hd)[a-z]+[0-9]*$|^mmcblk[0-9]+`)
)

// whole returns the disk of a partition or namespace: sda of sda1, nvme0 of nvme0n1p2.
func whole(name string) string {
	for _, form := range [...]*regexp.Regexp{scsiName, nvmeName} {
		if m := form.FindStringSubmatch(name); m != nil {
			return m[1]
		}
	}
	return name
}

// physical reports whether a block device's name is that of a disk, not of a volume such as dm-0 or md127.
func physical(name string) bool {
	return scsiName.MatchString(name) || nvmeName.MatchString(name) || otherName.MatchString(name)
}

// text returns a file's content without surrounding blanks; "" if it cannot be read.
func text(path string) string {
	b, err := os.ReadFile(path) // a file of sysfs has at most a page
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(strings.Trim(string(b), " \n\x00"), "")
}
