//go:build unix

package redfish

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"hwsagent/probes"
)

// sixty returns a machine of 60 resources, of those that most have, without expansion.
func sixty(t testing.TB) *mock {
	m := newMock(t, "localstorage.json")
	for path := range m.resources {
		delete(m.resources, path)
	}
	ref := func(path string) map[string]any { return map[string]any{"@odata.id": rootPath + path} }
	ok := map[string]any{"State": "Enabled", "Health": "OK", "HealthRollup": "OK"}
	collection := func(path string, n int, make func(i int) map[string]any) {
		var members []any
		for i := range n {
			one := fmt.Sprintf("%s/%d", path, i)
			members = append(members, ref(one))
			o := make(i)
			o["@odata.id"], o["Id"], o["Name"], o["Status"] = rootPath+one, fmt.Sprint(i), fmt.Sprintf("Part %d of %s", i, path), ok
			o["Actions"] = map[string]any{"#Part.Reset": map[string]any{"target": rootPath + one + "/Actions/Part.Reset"}}
			m.resources[rootPath+one] = o
		}
		m.resources[rootPath+path] = map[string]any{"@odata.id": rootPath + path, "Members": members, "Members@odata.count": n}
	}
	m.resources[rootPath] = map[string]any{"Chassis": ref("/Chassis"), "Systems": ref("/Systems"), "Managers": ref("/Managers")}
	collection("/Chassis", 1, func(int) map[string]any {
		return map[string]any{"Sensors": ref("/Chassis/0/Sensors"), "PowerSubsystem": ref("/Chassis/0/PowerSubsystem"), "ThermalSubsystem": ref("/Chassis/0/ThermalSubsystem")}
	})
	m.resources[rootPath+"/Chassis/0/PowerSubsystem"] = map[string]any{"PowerSupplies": ref("/Chassis/0/PowerSupplies")}
	m.resources[rootPath+"/Chassis/0/ThermalSubsystem"] = map[string]any{"Fans": ref("/Chassis/0/Fans")}
	limits := map[string]any{"UpperCaution": map[string]any{"Reading": 80}, "UpperCritical": map[string]any{"Reading": 90}}
	collection("/Chassis/0/Sensors", 20, func(i int) map[string]any {
		return map[string]any{"Reading": 20 + i, "ReadingType": "Temperature", "ReadingUnits": "Cel", "Thresholds": limits, "PhysicalContext": "SystemBoard"}
	})
	collection("/Chassis/0/Fans", 6, func(int) map[string]any {
		return map[string]any{"SpeedPercent": map[string]any{"Reading": 40, "SpeedRPM": 4000}}
	})
	collection("/Chassis/0/PowerSupplies", 2, func(int) map[string]any { return map[string]any{"PowerCapacityWatts": 800, "Model": "PSU"} })
	collection("/Systems", 1, func(int) map[string]any {
		return map[string]any{"Processors": ref("/Systems/0/Processors"), "Memory": ref("/Systems/0/Memory"), "Storage": ref("/Systems/0/Storage")}
	})
	collection("/Systems/0/Processors", 2, func(int) map[string]any { return map[string]any{"ProcessorType": "CPU", "MaxSpeedMHz": 3000} })
	collection("/Systems/0/Memory", 8, func(int) map[string]any { return map[string]any{"CapacityMiB": 16384} })
	collection("/Systems/0/Storage", 1, func(int) map[string]any {
		var drives []any
		for i := range 8 {
			drives = append(drives, ref(fmt.Sprintf("/Systems/0/Drives/%d", i)))
		}
		return map[string]any{"Drives": drives}
	})
	collection("/Systems/0/Drives", 8, func(i int) map[string]any {
		return map[string]any{"CapacityBytes": 1e12, "Model": "D", "SerialNumber": fmt.Sprint("S", i), "MediaType": "SSD", "PredictedMediaLifeLeftPercent": 90}
	})
	collection("/Managers", 1, func(int) map[string]any { return map[string]any{"FirmwareVersion": "1.0"} })
	return m
}

// serveFleet is the variable with which a benchmark starts this program again, as the services that it reads.
const serveFleet = "HWSAGENT_REDFISH_SERVE"

// TestServe serves a machine of 60 resources for a benchmark in another process, until that closes its standard input.
func TestServe(t *testing.T) {
	if os.Getenv(serveFleet) == "" {
		t.Skip("serves BenchmarkFleet, which starts it: run by hand")
	}
	m := sixty(t)
	m.places = 1000
	c := m.config()
	fmt.Println(c.Target, c.Fingerprint)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startFleet starts TestServe in another process, and returns the configuration of its clients.
func startFleet(b *testing.B) (c Config) {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestServe$")
	cmd.Env = append(os.Environ(), serveFleet+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	c = Config{Username: user, Password: password, RequestTimeout: secondsLong}
	if _, err := fmt.Fscan(out, &c.Target, &c.Fingerprint); err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkFleet has 200 probes read a machine of 60 resources each, round after round, against services in another process. It reports
// what one round of one machine takes, what 200 machines each minute would take of a core, and the memory that the probes keep between
// rounds.
func BenchmarkFleet(b *testing.B) {
	const machines = 200
	c := startFleet(b)
	fleet := make([]*Probe, machines)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range fleet {
		fleet[i] = newProbe(b, c)
	}
	round := func() {
		var wg sync.WaitGroup
		slots := make(chan struct{}, 8)
		for _, p := range fleet {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				if err := p.Collect(b.Context(), probes.NewRound(0)); err != nil {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
	round()
	for range 3 { // stacks shrink by half with each collection
		runtime.GC()
	}
	runtime.ReadMemStats(&after)
	round()
	cpu := spent()
	for b.Loop() {
		round()
	}
	perRound := (spent() - cpu).Seconds() / float64(b.N) / machines
	b.ReportMetric(perRound*1e3, "ms_cpu/machine")
	b.ReportMetric(perRound*machines/60*100, "%core")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB_heap")
	b.ReportMetric(float64(after.StackInuse-before.StackInuse)/(1<<20), "MiB_stacks")
}

// spent returns the CPU time of this process.
func spent() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
