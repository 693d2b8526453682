//go:build linux

package nvidia

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFlood: an nvidia-smi that prints 100 MB is stopped.
func TestFlood(t *testing.T) {
	dir, c := machine(t, "")
	put(t, dir, "flood", "")
	if got, err := round(t, newProbe(t, c)); err == nil || !strings.Contains(err.Error(), "it prints more than max_output") || got != "" {
		t.Errorf("%v\n%.300s", err, got)
	}
}

// TestHalf: half an answer, wherever it is cut, is an error and gives no series.
func TestHalf(t *testing.T) {
	whole := read(t, "testdata/tesla-t4.xml")
	end := strings.LastIndex(whole, "</nvidia_smi_log>")
	for n := range 20 {
		_, c := machine(t, whole[:end*n/19])
		if got, err := round(t, newProbe(t, c)); err == nil || got != "" {
			t.Errorf("%d of %d bytes: %v\n%.300s", end*n/19, len(whole), err, got)
		}
	}
}

// TestLies: one GPU a thousand times is one GPU, and numbers that no hardware has are not sent.
func TestLies(t *testing.T) {
	gpu := `<gpu id="00000000:02:00.0"><uuid>GPU-1</uuid><temperature><gpu_temp>65535 C</gpu_temp></temperature><fan_speed>-40 %</fan_speed><gpu_power_readings><power_draw>1e400 W</power_draw></gpu_power_readings>` +
		`<utilization><gpu_util>much %</gpu_util></utilization><fb_memory_usage><total>0 MiB</total><used>99999999999999999999999 MiB</used></fb_memory_usage></gpu>`
	_, c := machine(t, "<nvidia_smi_log>"+strings.Repeat(gpu, 1000)+"</nvidia_smi_log>")
	got, err := round(t, newProbe(t, c))
	if n := strings.Count(got, `hw_component_info{`); err != nil || n != 2 || !strings.Contains(got, "nvidia_gpus{} 1\n") { // the GPU and its fan
		t.Errorf("%d components: %v\n%.500s", n, err, got)
	}
	for _, lie := range []string{"hw_temperature_celsius{", "hw_fan_speed_ratio{", "hw_power_watts{", "hw_gpu_utilization_ratio{", "hw_gpu_memory_utilization_ratio{"} {
		if strings.Contains(got, lie) {
			t.Errorf("%s was sent:\n%s", lie, got)
		}
	}
}

// TestDisappears: nvidia-smi is removed while the probe runs, as an update of the driver does, and comes back.
func TestDisappears(t *testing.T) {
	dir, c := machine(t, read(t, "testdata/tesla-t4.xml"))
	program := filepath.Join(dir, "tool")
	c.Command = []string{program}
	install := func() {
		t.Helper()
		text := fmt.Sprintf("#!/bin/sh\nexec /bin/sh %s \"$@\"\n", filepath.Join(dir, "nvidia-smi"))
		if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	install()
	p := newProbe(t, c)
	before, err := round(t, p)
	if err != nil || before == "" {
		t.Fatal(err)
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if got, err := round(t, p); !errors.Is(err, os.ErrNotExist) || got != "" {
		t.Errorf("without it: %v\n%.300s", err, got)
	}
	install()
	if got, err := round(t, p); err != nil || strings.Count(got, "\n") != strings.Count(before, "\n") {
		t.Errorf("after it came back: %v", err)
	}
}
