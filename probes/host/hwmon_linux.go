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

// hwmon collects the node_hwmon_* of the sensor chips.
type hwmon struct {
	chips    *sensorChips
	families map[hwmonKind]hwmonFamily

	chipNames, sensorLabel *probes.Family
}

// sensorChips reads the sensor chips (the kernel's Documentation/hwmon/sysfs-interface.rst), once a round for all
// collectors that need them. Each chip is read under guard: a value may come over a slow or hung bus.
type sensorChips struct {
	dir     string
	exclude *regexp.Regexp
	guard   guard[chipContent]
	origin  func(dir string) origin // nil: not needed

	read  bool // whether the chips were read in this round
	found []chipSensors
	err   error
}

// chipSensors is a chip with its sensors in this round, or the reason why there are none.
type chipSensors struct {
	chip
	chipContent
	err error
}

// chipContent is the data read from a chip.
type chipContent struct {
	sensors []sensor
	origin  origin
}

// chip is one directory of the class.
type chip struct {
	dir   string
	label string // value of the label chip, unique
	name  string // the driver's name for it; may be ""
}

func newHwmon(e *environment) reader {
	return &hwmon{
		chips:       e.chips,
		families:    make(map[hwmonKind]hwmonFamily),
		chipNames:   gauge("node_hwmon_chip_names", "The driver's name for the chip; always 1."),
		sensorLabel: gauge("node_hwmon_sensor_label", "The driver's name for the sensor; always 1."),
	}
}

func (h *hwmon) read(ctx context.Context, r *probes.Round) error {
	chips, err := h.chips.get(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range chips {
		if name := clean(c.name); name != "" {
			r.Add(h.chipNames, 1, "chip", c.label, "chip_name", name)
		}
		if c.err != nil {
			errs = append(errs, fmt.Errorf("chip %s: %w", c.label, c.err))
		}
		for _, s := range c.sensors {
			h.add(r, c.label, s)
		}
	}
	return errors.Join(errs...)
}

func newSensorChips(e *environment) *sensorChips {
	return &sensorChips{dir: e.sys("class/hwmon"), exclude: e.pattern(&e.HwmonExclude), guard: guard[chipContent]{limit: e.limit, panics: e.panics}}
}

// begin resets the state for a new round.
func (c *sensorChips) begin() { c.read, c.found, c.err = false, nil, nil }

// get returns the chips of this round. An error means that there are none.
func (c *sensorChips) get(ctx context.Context) ([]chipSensors, error) {
	if c.read {
		return c.found, c.err
	}
	c.read = true
	chips, err := c.list()
	if err != nil {
		c.err = err
		return nil, err
	}
	dirs := make([]string, len(chips))
	for i := range chips {
		dirs[i] = chips[i].dir
	}
	c.found = make([]chipSensors, len(chips))
	for i, o := range c.guard.all(ctx, dirs, c.content) {
		c.found[i] = chipSensors{chips[i], o.value, o.err}
	}
	return c.found, nil
}

// content reads one chip, which may hang.
func (c *sensorChips) content(dir string) chipContent {
	content := chipContent{sensors: readChip(dir)}
	if c.origin != nil {
		content.origin = c.origin(dir)
	}
	return content
}

// list lists the chips and assigns labels. It only reads names from the drivers, which they have at hand.
func (c *sensorChips) list() ([]chip, error) {
	names, err := list(c.dir)
	if err != nil {
		return nil, err
	}
	chips := make([]chip, 0, len(names))
	same, alike := make(map[string]int), make(map[string]int)
	for _, n := range names {
		one := chip{dir: c.dir + "/" + n}
		one.name = text(one.dir + "/name")
		if one.label = chipLabel(one.dir, one.name); one.label == "" {
			continue
		}
		same[one.label]++
		alike[one.label+"\x00"+one.name]++
		chips = append(chips, one)
	}
	// Several chips may be on one device: then append the driver's name, or if that is equal too, the kernel's number.
	for i := range chips {
		one := &chips[i]
		if same[one.label] < 2 {
			continue
		}
		suffix := clean(one.name)
		if suffix == "" || alike[one.label+"\x00"+one.name] > 1 {
			suffix = filepath.Base(one.dir)
		}
		one.label += "_" + suffix
	}
	return slices.DeleteFunc(chips, func(one chip) bool { return c.exclude.MatchString(one.label) }), nil
}

// chipLabel returns the place of a chip (bus and device, which survive a reboot), or else its name, or else its number.
func chipLabel(dir, name string) string {
	if path := follow(follow(dir) + "/device"); path != "" {
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

// clean turns s into a part of a metric name: lower case, underscores for invalid characters, none at the ends.
func clean(s string) string {
	s = strings.Map(func(c rune) rune {
		if c == ':' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' {
			return c
		}
		return '_'
	}, strings.ToLower(s))
	return strings.Trim(s, "_")
}

// readChip reads the chip's sensors.
func readChip(dir string) []sensor {
	var sensors []sensor
	// Old drivers have their files one level up.
	for _, d := range [...]string{dir, dir + "/device"} {
		entries, err := os.ReadDir(d)
		if err != nil {
			continue
		}
		for _, e := range entries {
			kind, number, prop, ok := splitSensorFile(e.Name())
			if !ok || e.IsDir() { // every device has power/
				continue
			}
			name := kind + strconv.Itoa(number)
			i := slices.IndexFunc(sensors, func(s sensor) bool { return s.name == name })
			if i >= 0 && sensors[i].find(prop) != nil {
				continue // the chip's own file has been read
			}
			value, err := attribute(d + "/" + e.Name())
			if err != nil {
				continue // ENODATA, EAGAIN, EIO: no value at present
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
