package smart

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Admin commands of NVMe (NVM Express, base specification 2.0, figure 138), their arguments, and the sizes of their answers.
const (
	getLogPage   = 0x02
	identify     = 0x06
	logHealth    = 0x02       // log identifier SMART / Health Information (figure 202)
	controller   = 0x01       // CNS: the controller (figure 274)
	everywhere   = 0xffffffff // the namespace ID that means the whole controller
	healthSize   = 512
	identifySize = 4096
)

// adminCommand is a read-only command to a controller, which fills data.
type adminCommand struct {
	opcode    byte
	namespace uint32
	dword10   uint32
	data      []byte
	patience  time.Duration // the kernel's timeout for the command
}

// nvmeAsker sends admin commands to the named controller, such as nvme0.
type nvmeAsker func(name string, commands ...*adminCommand) error

// nvmeName matches the name of a controller; names of namespaces and partitions continue behind the number.
var nvmeName = regexp.MustCompile(`^nvme[0-9]{1,6}$`)

// isNVMe reports whether smartctl would read the device as an NVMe disk, judging by its path or type.
func (d Device) isNVMe() bool {
	return d.Type == "nvme" || d.Type == "" && strings.HasPrefix(d.Device, "/dev/nvme")
}

// controllers returns the NVMe controllers of this machine as devices.
func controllers(class string) ([]Device, error) {
	entries, err := os.ReadDir(class)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the machine has none
	}
	if err != nil {
		return nil, fmt.Errorf("look for NVMe controllers: %w", err)
	}
	var found []Device
	for _, e := range entries {
		if nvmeName.MatchString(e.Name()) {
			found = append(found, Device{Device: "/dev/" + e.Name(), Type: "nvme"})
		}
	}
	return found, nil
}

// readNVMe reads a controller's identity and health, by two commands that change nothing.
func (p *Probe) readNVMe(d Device) (*capture, error) {
	name := filepath.Base(d.Device)
	if !nvmeName.MatchString(name) {
		return nil, fmt.Errorf("%q is no NVMe controller, as in /dev/nvme0", d.Device)
	}
	who, health := make([]byte, identifySize), make([]byte, healthSize)
	err := p.askNVMe(name,
		&adminCommand{opcode: identify, dword10: controller, data: who, patience: p.config.limit()},
		&adminCommand{opcode: getLogPage, namespace: everywhere, dword10: logHealth | (healthSize/4-1)<<16, data: health, patience: p.config.limit()})
	if err != nil {
		return nil, explainNVMe(err)
	}
	return parseNVMe(name, who, health)
}

// explainNVMe adds the meaning of a refusal and the remedy.
func explainNVMe(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; NVMe commands need the capability CAP_SYS_ADMIN and the right to read the device: docs/probes/smart.md has the drop-in that gives them", err)
	}
	return err
}

// parseNVMe converts the two answers to the form of smartctl's JSON.
func parseNVMe(name string, who, health []byte) (*capture, error) {
	if len(who) < identifySize || len(health) < healthSize {
		return nil, fmt.Errorf("%s: the controller's answers have %d and %d bytes, want %d and %d", name, len(who), len(health), identifySize, healthSize)
	}
	c := new(capture)
	c.Device.Name, c.Device.InfoName, c.Device.Type, c.Device.Protocol = "/dev/"+name, "/dev/"+name, "nvme", "NVMe"
	// Identify Controller, figure 275.
	c.Serial, c.ModelName, c.Firmware = ascii(who[4:24]), ascii(who[24:64]), ascii(who[64:72])
	if total := wide(who[280:]); total > 0 {
		c.NVMeSize = &total
	}
	c.Temperature = make(map[string]any)
	for _, t := range [...]struct {
		name string
		at   []byte
	}{{"current", health[1:]}, {"op_limit_max", who[266:]}, {"critical_limit_max", who[268:]}} {
		if kelvin := binary.LittleEndian.Uint16(t.at); kelvin != 0 { // 0 means not reported
			c.Temperature[t.name] = float64(int(kelvin) - 273)
		}
	}
	// SMART / Health Information, figure 207.
	b := func(at int) *float64 { v := float64(health[at]); return &v }
	w := func(at int) *float64 { v := wide(health[at:]); return &v }
	c.NVMe = &nvmeHealth{
		Warning: b(0), Spare: b(3), SpareThreshold: b(4), Used: b(5), UnitsRead: w(32), UnitsWritten: w(48), MediaErrors: w(160), ErrorEntries: w(176),
	}
	c.PowerCycles = w(112)
	c.PowerOn = &powerOn{Hours: wide(health[128:])}
	well := health[0] == 0
	c.Status = &selfStatus{Passed: &well}
	return c, nil
}

// wide reads a number of 16 bytes, rounded to a float64.
func wide(b []byte) float64 {
	return float64(binary.LittleEndian.Uint64(b)) + math.Ldexp(float64(binary.LittleEndian.Uint64(b[8:])), 64)
}

// ascii decodes a text padded with blanks or zeros. It replaces other than printable ASCII with question marks.
func ascii(b []byte) string {
	text := []byte(strings.Trim(string(b), " \x00"))
	for i, c := range text {
		if c < ' ' || c > '~' {
			text[i] = '?'
		}
	}
	return string(text)
}

// own splits the devices into those that the probe reads itself and the others, for smartctl.
func (p *Probe) own(found []Device) (own, others []Device, err error) {
	if p.config.NVMe != nvmeIoctl {
		return nil, found, nil
	}
	for _, d := range found {
		if d.isNVMe() {
			own = append(own, Device{Device: "/dev/" + controllerOf(filepath.Base(d.Device)), Type: "nvme"})
		} else {
			others = append(others, d)
		}
	}
	if len(p.config.Devices) == 0 || p.config.Scan {
		all, err := controllers(p.class)
		if err != nil {
			return nil, others, err
		}
		own = append(own, all...)
	}
	slices.SortFunc(own, func(a, b Device) int { return strings.Compare(a.Device, b.Device) })
	return slices.Compact(own), others, nil
}

// controllerOf returns the controller in the name of a namespace: nvme0 of nvme0n1.
func controllerOf(name string) string {
	digits := strings.TrimPrefix(name, "nvme")
	end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	if digits == name || end <= 0 {
		return name
	}
	return "nvme" + digits[:end]
}
