//go:build linux

package host

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"hwsagent/probes"
)

// plantUnit is a unit of a systemd that a test plays.
type plantUnit struct {
	name, load, active string
	properties         map[string]any
}

// unitPath is the path of the unit's object.
func (u plantUnit) path() dbus.ObjectPath {
	return dbus.ObjectPath("/org/freedesktop/systemd1/unit/" + strings.NewReplacer(".", "_2e", "-", "_2d", "@", "_40").Replace(u.name))
}

// plantSystemd returns a bus with a systemd on it that has these properties and units.
func plantSystemd(t *testing.T, manager map[string]any, units []plantUnit) *testBus {
	t.Helper()
	get := func(from map[string]any, name string) any {
		if v, ok := from[name]; ok {
			return dbus.MakeVariant(v)
		}
		return errorAnswer("org.freedesktop.DBus.Error.UnknownProperty")
	}
	return startBus(t, func(c testCall) any {
		if c.method == "org.freedesktop.systemd1.Manager.ListUnits" {
			type listed struct {
				Name, Description, Load, Active, Sub, Followed string
				Path                                           dbus.ObjectPath
				Job                                            uint32
				JobType                                        string
				JobPath                                        dbus.ObjectPath
			}
			all := []listed{}
			for _, u := range units {
				all = append(all, listed{Name: u.name, Description: "A description", Load: u.load, Active: u.active, Sub: "running", Path: u.path(), JobPath: "/"})
			}
			return all
		}
		if c.method != "org.freedesktop.DBus.Properties.Get" || len(c.args) != 2 {
			return errorAnswer("org.freedesktop.DBus.Error.UnknownMethod")
		}
		of, name := c.args[0].(string), c.args[1].(string)
		if c.path == "/org/freedesktop/systemd1" {
			return get(manager, name)
		}
		for _, u := range units {
			// Of an interface of its own kind, or of all units.
			if kind := strings.TrimPrefix(of, "org.freedesktop.systemd1."); c.path == u.path() && (kind == "Unit" || strings.HasSuffix(u.name, "."+strings.ToLower(kind))) {
				return get(u.properties, name)
			}
		}
		return errorAnswer("org.freedesktop.DBus.Error.UnknownObject")
	})
}

// busyMachine returns a systemd with units of each kind.
func busyMachine(t *testing.T) *testBus {
	t.Helper()
	const noLimit = ^uint64(0)
	active := uint64(1_764_000_000_500_000)
	return plantSystemd(t, map[string]any{"Version": "252.39-1~deb12u2", "Virtualization": "kvm", "SystemState": "degraded"}, []plantUnit{
		{"ssh.service", "loaded", "active", map[string]any{"Type": "notify", "ActiveEnterTimestamp": active, "NRestarts": uint32(3), "TasksCurrent": uint64(2), "TasksMax": uint64(9000)}},
		{"getty@tty1.service", "loaded", "failed", map[string]any{"Type": "idle", "ActiveEnterTimestamp": active, "NRestarts": uint32(0), "TasksCurrent": noLimit, "TasksMax": noLimit}},
		{"old.service", "loaded", "reloading", map[string]any{"Type": "simple"}}, // of a systemd before 235
		{"gone.service", "not-found", "inactive", nil},
		{"apt-daily.timer", "loaded", "active", map[string]any{"ActiveEnterTimestamp": active, "LastTriggerUSec": uint64(1_764_000_100_000_000)}},
		{"dbus.socket", "loaded", "active", map[string]any{"ActiveEnterTimestamp": active, "NAccepted": uint32(7), "NConnections": uint32(1), "NRefused": uint32(2)}},
		{"multi-user.target", "loaded", "active", map[string]any{"ActiveEnterTimestamp": active}},
		{"home.mount", "loaded", "active", map[string]any{"Type": "ext4", "ActiveEnterTimestamp": active}},
		{"mount.service", "loaded", "inactive", map[string]any{"Type": "oneshot", "NRestarts": uint32(0)}},
	})
}

func systemdOf(t *testing.T, c Config) (*scrape, error) {
	t.Helper()
	c.Collectors = []string{"systemd"}
	r := probes.NewRound(0)
	err := mustNew(t, c).Collect(t.Context(), r)
	s := ofRound(t, r)
	for key := range s.values {
		if strings.HasPrefix(key, "node_scrape") {
			delete(s.values, key)
		}
	}
	return s, err
}

// TestSystemd has a unit of each kind, and each figure of it.
func TestSystemd(t *testing.T) {
	s, err := systemdOf(t, Config{DBusSocket: busyMachine(t).Path})
	if err != nil {
		t.Error(err)
	}
	want := map[string]float64{
		`node_systemd_version{version="252.39-1~deb12u2"}`:                   252.39,
		`node_systemd_virtualization_info{virtualization_type="kvm"}`:        1,
		`node_systemd_system_running`:                                        0,
		`node_systemd_units{state="active"}`:                                 5,
		`node_systemd_units{state="activating"}`:                             0,
		`node_systemd_units{state="deactivating"}`:                           0,
		`node_systemd_units{state="inactive"}`:                               2,
		`node_systemd_units{state="failed"}`:                                 1,
		`node_systemd_units{state="reloading"}`:                              1,
		`node_systemd_service_restart_total{name="ssh.service"}`:             3,
		`node_systemd_service_restart_total{name="getty@tty1.service"}`:      0,
		`node_systemd_service_restart_total{name="mount.service"}`:           0,
		`node_systemd_unit_tasks_current{name="ssh.service"}`:                2,
		`node_systemd_unit_tasks_max{name="ssh.service"}`:                    9000,
		`node_systemd_timer_last_trigger_seconds{name="apt-daily.timer"}`:    1_764_000_100,
		`node_systemd_socket_accepted_connections_total{name="dbus.socket"}`: 7,
		`node_systemd_socket_current_connections{name="dbus.socket"}`:        1,
		`node_systemd_socket_refused_connections_total{name="dbus.socket"}`:  2,
	}
	for _, u := range []struct{ name, active, typ string }{
		{"ssh.service", "active", "notify"}, {"getty@tty1.service", "failed", "idle"}, {"old.service", "reloading", "simple"}, {"mount.service", "inactive", "oneshot"},
		{"apt-daily.timer", "active", ""}, {"dbus.socket", "active", ""}, {"multi-user.target", "active", ""},
	} {
		for _, state := range unitStates {
			labels := fmt.Sprintf("name=%q,state=%q", u.name, state)
			if u.typ != "" {
				labels += fmt.Sprintf(",type=%q", u.typ)
			}
			want["node_systemd_unit_state{"+labels+"}"] = boolean(state == u.active)
		}
		want[fmt.Sprintf("node_systemd_unit_start_time_seconds{name=%q}", u.name)] = map[bool]float64{true: 1_764_000_000.5}[u.active == "active"]
	}
	if d := cmp.Diff(want, s.values); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestSystemdUnitsAreChosen: by both patterns, and the sums count all units as before.
func TestSystemdUnitsAreChosen(t *testing.T) {
	bus := busyMachine(t)
	for _, c := range []struct{ include, exclude, want string }{
		{"", "", "apt-daily.timer dbus.socket getty@tty1.service mount.service multi-user.target old.service ssh.service"},
		{`\.service$`, "", "getty@tty1.service mount.service old.service ssh.service"},
		{`\.(service|mount)$`, `^(getty|old)`, "home.mount mount.service ssh.service"},
		{"", "^$", "apt-daily.timer dbus.socket getty@tty1.service home.mount mount.service multi-user.target old.service ssh.service"},
		{"^nothing$", "", ""},
	} {
		s, err := systemdOf(t, Config{DBusSocket: bus.Path, SystemdInclude: c.include, SystemdExclude: c.exclude})
		var names []string
		for _, key := range keysOf(s) {
			if name, ok := strings.CutPrefix(key, "node_systemd_unit_start_time_seconds{name=\""); ok {
				names = append(names, strings.TrimSuffix(name, "\"}"))
			}
		}
		if got := strings.Join(names, " "); got != c.want || err != nil || s.values[`node_systemd_units{state="active"}`] != 5 {
			t.Errorf("%q without %q: got %q, want %q (%v)", c.include, c.exclude, got, c.want, err)
		}
	}
	all, err := systemdOf(t, Config{DBusSocket: bus.Path, SystemdExclude: "^$"})
	if got, there := all.values[`node_systemd_unit_state{name="home.mount",state="active",type="ext4"}`]; got != 1 || !there || err != nil {
		t.Errorf("a mount's type is not in its label: %v", err)
	}
}

// TestSystemdThatFails: a bus that is missing, refuses access, hangs or sends nonsense only fails this collector, which
// reports why.
func TestSystemdThatFails(t *testing.T) {
	same := func(answer any) string { return startBus(t, func(testCall) any { return answer }).Path }
	for name, c := range map[string]struct{ socket, want string }{
		"no socket":    {filepath.Join(t.TempDir(), "none"), "dbus_socket"},
		"not let in":   {fakeBus(t, "REJECTED EXTERNAL", nil), "authentication failed"},
		"no systemd":   {startBus(t, nil).Path, "ask systemd for its units: org.freedesktop.DBus.Error."},
		"refuses":      {same(errorAnswer("org.freedesktop.DBus.Error.AccessDenied")), "ask systemd for its units: org.freedesktop.DBus.Error.AccessDenied"},
		"hangs":        {same(noAnswer{}), "i/o timeout"},
		"another list": {same([]string{"a"}), "ask systemd for its units: dbus.Store: type mismatch"},
		"no bus":       {fakeBus(t, "HTTP/1.1 400 Bad Request", nil), "sign in to the bus"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := systemdOf(t, Config{DBusSocket: c.socket, ReadTimeout: 3e9})
			if err == nil || !strings.Contains(err.Error(), "systemd: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

// TestSystemdOfAnotherAge: a systemd without most properties gives the states of its units all the same, and one with a version and a
// state that are new is taken as it is.
func TestSystemdOfAnotherAge(t *testing.T) {
	old := plantSystemd(t, map[string]any{"Version": "systemd 208"}, []plantUnit{{"a.service", "loaded", "active", nil}, {"b.timer", "loaded", "maintenance", map[string]any{"LastTriggerUSec": "soon"}}})
	got, err := systemdOf(t, Config{DBusSocket: old.Path})
	if err != nil || got.values[`node_systemd_version{version="systemd 208"}`] != 208 || got.values[`node_systemd_unit_state{name="a.service",state="active"}`] != 1 || got.values[`node_systemd_units{state="maintenance"}`] != 1 {
		t.Errorf("%v, %v", got.values, err)
	}
	if _, there := got.values["node_systemd_system_running"]; there {
		t.Error("the state of a system that does not say it is given")
	}
	bare := plantSystemd(t, map[string]any{"Version": "v300~rc1", "Virtualization": "", "SystemState": "running"}, nil)
	got, err = systemdOf(t, Config{DBusSocket: bare.Path})
	if err != nil || got.values[`node_systemd_virtualization_info{virtualization_type="none"}`] != 1 || got.values["node_systemd_system_running"] != 1 || got.values[`node_systemd_version{version="v300~rc1"}`] != 300 {
		t.Errorf("%v, %v", got.values, err)
	}
}

// TestSystemdIsAskedFor: only who names the collector pays for it.
func TestSystemdIsAskedFor(t *testing.T) {
	bus := busyMachine(t)
	c := fixtures(t)
	c.DBusSocket, c.Collectors = bus.Path, append([]string{"-filesystem"}, "+processes")
	r := probes.NewRound(0)
	_ = mustNew(t, c).Collect(t.Context(), r) // what the fixtures lack
	if n := bus.calls.Load(); n > 0 {
		t.Errorf("%d calls", n)
	}
	if _, err := systemdOf(t, c); err != nil || bus.calls.Load() == 0 {
		t.Errorf("%d calls, %v", bus.calls.Load(), err)
	}
}

// TestSystemdAgainstNodeExporter: Debian's node_exporter reads the same from the same systemd.
func TestSystemdAgainstNodeExporter(t *testing.T) {
	bus := busyMachine(t)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+bus.Path)
	c := Config{DBusSocket: bus.Path, Collectors: []string{"systemd"}, SystemdExclude: `\.(automount|device|scope|slice)$`}
	theirs := exporter(t, c, "--collector.systemd.unit-exclude=.+\\.(automount|device|scope|slice)", "--collector.systemd.enable-task-metrics", "--collector.systemd.enable-restarts-metrics", "--collector.systemd.enable-start-time-metrics")()
	ours, err := systemdOf(t, c)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, key := range keysOf(ours, theirs) {
		switch {
		case !strings.HasPrefix(key, "node_systemd_"):
			continue
		case strings.HasPrefix(key, "node_systemd_virtualization_info"): // since 1.8
			continue
		case strings.HasPrefix(key, "node_systemd_unit_state{") && strings.Contains(key, ".mount"): // 1.5 does not know a mount's type
			continue
		}
		compared++
		a, in := ours.values[key]
		b, there := theirs.values[key]
		if a != b || in != there {
			t.Errorf("%s: ours %v (%v), theirs %v (%v)", key, a, in, b, there)
		}
	}
	if compared < 50 {
		t.Errorf("only %d series are compared", compared)
	}
}
