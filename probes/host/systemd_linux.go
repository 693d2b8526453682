package host

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"hwsagent/probes"
)

// The names of systemd on the bus: org.freedesktop.systemd1(5).
const (
	systemdName    = "org.freedesktop.systemd1"
	systemdPath    = "/org/freedesktop/systemd1"
	systemdManager = systemdName + ".Manager"
)

// unitStates are the values of a unit's ActiveState that have a series each.
var unitStates = []string{"active", "activating", "deactivating", "inactive", "failed"}

// systemdUnit is a unit in the answer of ListUnits.
type systemdUnit struct {
	name, load, active string
	path               dbus.ObjectPath
}

// kind returns service, timer, ….
func (u *systemdUnit) kind() string { return u.name[strings.LastIndexByte(u.name, '.')+1:] }

// unitProperty is a figure of each unit of a kind.
type unitProperty struct {
	kind      string // "" for all
	of, name  string // interface, without systemd's name in front, and property
	family    *probes.Family
	perSecond float64 // units of the property per second; 0 if it is not a time
}

// systemdFamilies are the families of the collector.
type systemdFamilies struct {
	state, units, running, version, virtualization, started *probes.Family
	properties                                              []unitProperty
}

func newSystemdFamilies() *systemdFamilies {
	const microseconds = 1e6
	started := gauge("node_systemd_unit_start_time_seconds", "When the unit became active, as a Unix time; 0 if it is not active.")
	return &systemdFamilies{
		state:          gauge("node_systemd_unit_state", "Whether the unit is in this state (1) or not (0)."),
		units:          gauge("node_systemd_units", "Units, by state."),
		running:        gauge("node_systemd_system_running", "Whether the system has started and no unit has failed (systemctl is-system-running)."),
		version:        gauge("node_systemd_version", "The version of systemd."),
		virtualization: gauge("node_systemd_virtualization_info", "Always 1; the label is what systemd takes the machine for."),
		started:        started,
		properties: []unitProperty{
			{"", "Unit", "ActiveEnterTimestamp", started, microseconds},
			{"service", "Service", "NRestarts", counter("node_systemd_service_restart_total", "How often systemd has started the service again by itself."), 0},
			{"service", "Service", "TasksCurrent", gauge("node_systemd_unit_tasks_current", "Processes and threads of the service."), 0},
			{"service", "Service", "TasksMax", gauge("node_systemd_unit_tasks_max", "How many processes and threads the service may have."), 0},
			{"timer", "Timer", "LastTriggerUSec", gauge("node_systemd_timer_last_trigger_seconds", "When the timer last went off, as a Unix time."), microseconds},
			{"socket", "Socket", "NAccepted", counter("node_systemd_socket_accepted_connections_total", "Connections that were accepted."), 0},
			{"socket", "Socket", "NConnections", gauge("node_systemd_socket_current_connections", "Connections that are open."), 0},
			{"socket", "Socket", "NRefused", counter("node_systemd_socket_refused_connections_total", "Connections that were refused."), 0},
		},
	}
}

// newSystemd asks systemd about its units over the system's D-Bus. It requests a few figures of each unit, so it only
// runs if configured.
func newSystemd(e *environment) reader {
	f := newSystemdFamilies()
	include, exclude := e.pattern(&e.SystemdInclude), e.pattern(&e.SystemdExclude)
	return newOnce(e, func() (samples, error) {
		b, err := dialBus(e.DBusSocket, time.Now().Add(e.limit*9/10)) // a bus that hangs ends before the guard's limit, so the units read so far count
		if err != nil {
			return nil, fmt.Errorf("reach systemd over D-Bus: %w (the collector needs a system with systemd and dbus, and dbus_socket to name the bus' socket)", err)
		}
		defer b.close()
		s, units, err := f.manager(b)
		if err != nil {
			return s, err
		}
		var chosen []systemdUnit
		for _, u := range units {
			if u.load == "loaded" && include.MatchString(u.name) && !exclude.MatchString(u.name) {
				chosen = append(chosen, u)
			}
		}
		err = f.details(b, chosen, &s)
		return s, err
	})
}

// propertyCall returns the call that reads a property of an object of systemd.
func propertyCall(path dbus.ObjectPath, of, name string) busCall {
	return busCall{systemdName, path, "org.freedesktop.DBus.Properties.Get", []any{of, name}}
}

// manager requests data about systemd itself, and the list of units.
func (f *systemdFamilies) manager(b *bus) (s samples, units []systemdUnit, err error) {
	calls := []busCall{
		propertyCall(systemdPath, systemdManager, "Version"),
		propertyCall(systemdPath, systemdManager, "Virtualization"),
		propertyCall(systemdPath, systemdManager, "SystemState"),
		{systemdName, systemdPath, systemdManager + ".ListUnits", nil},
	}
	var failed []error
	ended := b.do(calls, func(i int, body []any, err error) {
		if calls[i].args == nil {
			if err == nil {
				units, err = readUnits(body)
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("ask systemd for its units: %w", err))
			}
			return
		}
		name := fmt.Sprint(calls[i].args[1])
		if err == nil {
			err = f.addManager(&s, name, body)
		}
		if err != nil && !refused(err) {
			failed = append(failed, fmt.Errorf("ask systemd for %s: %w", name, err))
		}
	})
	if err = errors.Join(append(failed, ended)...); err != nil {
		return s, nil, err
	}
	count := make(map[string]int)
	for _, u := range units {
		count[u.active]++
	}
	for _, state := range unitStates {
		s.add(f.units, float64(count[state]), "state", state)
		delete(count, state)
	}
	for state, n := range count { // such as reloading, or a state of a later systemd
		s.add(f.units, float64(n), "state", state)
	}
	return s, units, nil
}

var versionNumber = regexp.MustCompile(`[0-9]{3,}(?:\.[0-9]+)?`)

// addManager adds a property of systemd itself.
func (f *systemdFamilies) addManager(s *samples, name string, body []any) error {
	value, err := readProperty(body)
	if err != nil {
		return err
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("%s is not text but %v", name, value)
	}
	switch name {
	case "Version": // such as 252.39-1~deb12u2
		if v, err := strconv.ParseFloat(versionNumber.FindString(text), 64); err == nil {
			s.add(f.version, v, "version", text)
		}
	case "Virtualization": // "" on a machine
		if text == "" {
			text = "none"
		}
		s.add(f.virtualization, 1, "virtualization_type", text)
	case "SystemState":
		s.add(f.running, boolean(text == "running"))
	}
	return nil
}

// readUnits decodes the answer of ListUnits.
func readUnits(body []any) ([]systemdUnit, error) {
	var listed []struct {
		Name, Description, Load, Active, Sub, Followed string
		Path                                           dbus.ObjectPath
		Job                                            uint32
		JobType                                        string
		JobPath                                        dbus.ObjectPath
	}
	if err := dbus.Store(body, &listed); err != nil {
		return nil, err
	}
	units := make([]systemdUnit, 0, len(listed))
	for _, u := range listed {
		units = append(units, systemdUnit{name: u.Name, load: u.Load, active: u.Active, path: u.Path})
	}
	return units, nil
}

// readProperty decodes the answer to a call of [propertyCall]: a float64 for a number or bool, else a string.
func readProperty(body []any) (any, error) {
	var v dbus.Variant
	if err := dbus.Store(body, &v); err != nil {
		return nil, err
	}
	switch v := v.Value().(type) {
	case string:
		return v, nil
	case bool:
		return boolean(v), nil
	case uint32:
		return float64(v), nil
	case int32:
		return float64(v), nil
	case uint64:
		return float64(v), nil
	case int64:
		return float64(v), nil
	}
	return nil, fmt.Errorf("the property has the type %q, which is no number and no text", v.Signature())
}

// details requests the figures of units and adds them. A property that this systemd does not have, or a unit that has
// disappeared meanwhile, is skipped.
func (f *systemdFamilies) details(b *bus, units []systemdUnit, s *samples) error {
	type question struct {
		unit int
		is   *unitProperty // nil: the type of a service or mount
	}
	var calls []busCall
	var questions []question
	ask := func(unit int, of, name string, is *unitProperty) {
		calls = append(calls, propertyCall(units[unit].path, systemdName+"."+of, name))
		questions = append(questions, question{unit, is})
	}
	for i := range units {
		u := &units[i]
		switch u.kind() {
		case "service":
			ask(i, "Service", "Type", nil)
		case "mount":
			ask(i, "Mount", "Type", nil)
		}
		for j := range f.properties {
			p := &f.properties[j]
			switch {
			case p.kind != "" && p.kind != u.kind():
			case p.family == f.started && u.active != "active":
				s.add(p.family, 0, "name", u.name)
			default:
				ask(i, p.of, p.name, p)
			}
		}
	}
	types := make([]string, len(units))
	var failed error // the first error; the others are similar
	ended := b.do(calls, func(i int, body []any, err error) {
		q := questions[i]
		var value any
		if err == nil {
			value, err = readProperty(body)
		}
		if err != nil {
			if failed == nil && !refused(err) {
				failed = fmt.Errorf("ask systemd for %s of %s: %w", calls[i].args[1], units[q.unit].name, err)
			}
			return
		}
		switch v := value.(type) {
		case string:
			if q.is == nil {
				types[q.unit] = v
			}
		case float64:
			if q.is == nil || v >= math.MaxUint64 { // the largest number means no limit, or unknown
				return
			}
			if q.is.perSecond != 0 {
				v /= q.is.perSecond
			}
			s.add(q.is.family, v, "name", units[q.unit].name)
		}
	})
	for i, u := range units {
		for _, state := range unitStates {
			s.add(f.state, boolean(u.active == state), "name", u.name, "state", state, "type", types[i])
		}
	}
	return errors.Join(failed, ended)
}
