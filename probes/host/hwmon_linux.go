package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hwsagent/probes"
)

// hwmon reads the sensor chips (the kernel's Documentation/hwmon/sysfs-interface.rst).
// Each chip is read under guard: a value may come over a slow or hung bus.
type hwmon struct {
	dir      string
	exclude  *regexp.Regexp
	guard    guard[[]sensor]
	families map[hwmonKind]hwmonFamily

	chipNames, sensorLabel *probes.Family
}

// sensor is what a chip's files tell of one sensor, such as temp1.
type sensor struct {
	kind       string // temp, in, fan, …
	name       string // kind and number
	properties []property
}

// property is one file of a sensor: temp1_max has the name max, pwm1 the name "".
type property struct{ name, value string }

// chip is one directory of the class.
type chip struct {
	dir   string
	label string // value of the label chip, unique
	name  string // what the driver calls it; may be ""
}

func newHwmon(e *environment) reader {
	return &hwmon{
		dir:         e.sys("class/hwmon"),
		exclude:     e.pattern(&e.HwmonExclude),
		guard:       guard[[]sensor]{limit: e.limit, panics: e.panics},
		families:    make(map[hwmonKind]hwmonFamily),
		chipNames:   gauge("node_hwmon_chip_names", "What the driver calls the chip; always 1."),
		sensorLabel: gauge("node_hwmon_sensor_label", "What the driver calls the sensor; always 1."),
	}
}

func (h *hwmon) read(ctx context.Context, r *probes.Round) error {
	chips, err := h.chips()
	if err != nil {
		return err
	}
	dirs := make([]string, len(chips))
	for i, c := range chips {
		dirs[i] = c.dir
		if name := clean(c.name); name != "" {
			r.Add(h.chipNames, 1, "chip", c.label, "chip_name", name)
		}
	}
	var errs []error
	for i, o := range h.guard.all(ctx, dirs, readChip) {
		if o.err != nil {
			errs = append(errs, fmt.Errorf("chip %s: %w", chips[i].label, o.err))
		}
		for _, s := range o.value {
			h.add(r, chips[i].label, s)
		}
	}
	return errors.Join(errs...)
}

// chips lists the chips and gives them labels. It asks the drivers for nothing but
// names, which they have at hand.
func (h *hwmon) chips() ([]chip, error) {
	names, err := list(h.dir)
	if err != nil {
		return nil, err
	}
	chips := make([]chip, 0, len(names))
	same, alike := make(map[string]int), make(map[string]int)
	for _, n := range names {
		c := chip{dir: h.dir + "/" + n}
		c.name = text(c.dir + "/name")
		if c.label = chipLabel(c.dir, c.name); c.label == "" {
			continue
		}
		same[c.label]++
		alike[c.label+"\x00"+c.name]++
		chips = append(chips, c)
	}
	// Several chips may sit on one device: then the driver's name tells them apart, and
	// if that is the same as well, the kernel's number.
	for i := range chips {
		c := &chips[i]
		if same[c.label] < 2 {
			continue
		}
		suffix := clean(c.name)
		if suffix == "" || alike[c.label+"\x00"+c.name] > 1 {
			suffix = filepath.Base(c.dir)
		}
		c.label += "_" + suffix
	}
	return slices.DeleteFunc(chips, func(c chip) bool { return h.exclude.MatchString(c.label) }), nil
}

// chipLabel is where the chip is (bus and device, which survive a reboot), else what
// it is called, else its number.
func chipLabel(dir, name string) string {
	if path, err := filepath.EvalSymlinks(dir + "/device"); err == nil {
		device, bus := clean(filepath.Base(path)), clean(filepath.Base(filepath.Dir(path)))
		switch {
		case bus != "" && device != "":
			return bus + "_" + device
		case device != "":
			return device
		}
	}
	if name := clean(name); name != "" {
		return name
	}
	return clean(filepath.Base(dir))
}

// clean makes s a part of a metric name: lower case, underscores for what may not be
// there, none at the ends.
func clean(s string) string {
	s = strings.Map(func(c rune) rune {
		if c == ':' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' {
			return c
		}
		return '_'
	}, strings.ToLower(s))
	return strings.Trim(s, "_")
}

// readChip reads the chip's sensors. It is what may hang.
func readChip(dir string) []sensor {
	var sensors []sensor
	// Old drivers have their files one level higher.
	for _, d := range [...]string{dir, dir + "/device"} {
		entries, err := os.ReadDir(d)
		if err != nil {
			continue
		}
		for _, e := range entries {
			kind, number, prop, ok := splitSensorFile(e.Name())
			if !ok || e.IsDir() { // power/ is in every device
				continue
			}
			name := kind + strconv.Itoa(number)
			i := slices.IndexFunc(sensors, func(s sensor) bool { return s.name == name })
			if i >= 0 && sensors[i].find(prop) != nil {
				continue // the chip's own file was read
			}
			value, err := attribute(d + "/" + e.Name())
			if err != nil {
				continue // ENODATA, EAGAIN, EIO: nothing to say at the moment
			}
			if i < 0 {
				i = len(sensors)
				sensors = append(sensors, sensor{kind: kind, name: name})
			}
			sensors[i].properties = append(sensors[i].properties, property{prop, value})
		}
	}
	return sensors
}

func (s *sensor) find(name string) *property {
	for i := range s.properties {
		if s.properties[i].name == name {
			return &s.properties[i]
		}
	}
	return nil
}

// splitSensorFile splits temp1_crit_alarm into temp, 1, crit_alarm. A file without a
// number (vrm) has number 0 and no property.
func splitSensorFile(name string) (kind string, number int, prop string, ok bool) {
	i := strings.IndexAny(name, "0123456789")
	if i < 0 {
		i = len(name)
	}
	kind = name[:i]
	switch kind {
	case "vrm", "beep_enable", "update_interval", "in", "cpu", "fan", "pwm", "temp", "curr",
		"power", "energy", "humidity", "intrusion", "freq":
	default:
		return "", 0, "", false
	}
	if i == len(name) {
		return kind, 0, "", true
	}
	digits, prop, hasProp := strings.Cut(name[i:], "_")
	number, err := strconv.Atoi(digits)
	return kind, number, prop, err == nil && hasProp == (prop != "")
}
