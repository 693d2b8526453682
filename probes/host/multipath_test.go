//go:build linux

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hwsagent/internal/panics"
	"hwsagent/probes"
)

// TestMultipathWithOddPaths: a path that has gone, or has no state, takes no other path's samples away.
func TestMultipathWithOddPaths(t *testing.T) {
	for name, c := range map[string]struct {
		states map[string]string // of the slaves; "" is no file
		want   map[string]float64
	}{
		"gone":     {map[string]string{"sda": "running", "sdb": ""}, map[string]float64{"node_dmmultipath_device_paths": 2, "node_dmmultipath_device_paths_active": 1, "node_dmmultipath_device_paths_failed": 0}},
		"offline":  {map[string]string{"sda": "running", "sdb": "offline"}, map[string]float64{"node_dmmultipath_device_paths": 2, "node_dmmultipath_device_paths_active": 1, "node_dmmultipath_device_paths_failed": 1}},
		"no paths": {nil, map[string]float64{"node_dmmultipath_device_paths": 0, "node_dmmultipath_device_paths_active": 0, "node_dmmultipath_device_paths_failed": 0}},
	} {
		sys := t.TempDir()
		write := func(name, text string) {
			file := filepath.Join(sys, "block", name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("dm-0/dm/uuid", "mpath-3600\n")
		write("dm-0/dm/name", "mpatha\n")
		write("dm-0/dm/suspended", "0\n")
		write("dm-0/size", "8\n")
		write("dm-1/dm/uuid", "LVM-x\n")
		write("dm-2/dm/uuid", "mpath-going\n") // the rest has gone already
		for slave, state := range c.states {
			write("dm-0/slaves/"+slave+"/dev", "8:0\n")
			if state != "" {
				write(slave+"/device/state", state+"\n")
			}
		}
		e := &environment{settings: &settings{limit: 2 * time.Second}, panics: panics.New("test", quiet())}
		e.SysPath = sys
		r := probes.NewRound(0)
		if err := newMultipath(e).read(t.Context(), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := map[string]float64{}
		for _, s := range r.Samples() {
			got[s.Family.Name] = s.Value
			if strings.Contains(strings.Join(s.Labels, " "), "dm-2") {
				t.Errorf("%s: %v", name, s.Labels)
			}
		}
		want := map[string]float64{"node_dmmultipath_device_size_bytes": 4096, "node_dmmultipath_device_active": 1}
		for n, v := range c.want {
			want[n] = v
		}
		for n, v := range want {
			if now, ok := got[n]; !ok || now != v {
				t.Errorf("%s: %s is %v, %v, want %v", name, n, now, ok, v)
			}
		}
	}
}
