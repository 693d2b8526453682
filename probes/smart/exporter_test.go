//go:build linux

package smart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// startExporter runs smartctl_exporter with the test's smartctl, and returns its address.
func startExporter(t *testing.T, program, smartctl string, devices []string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	args := []string{"--smartctl.path=" + smartctl, "--web.listen-address=" + address, "--smartctl.interval=1h"}
	for _, d := range devices {
		args = append(args, "--smartctl.device="+d)
	}
	cmd := exec.Command(program, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return address
		}
		select {
		case <-done:
			t.Fatalf("smartctl_exporter ended: %s", said.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("smartctl_exporter does not listen: %s", said.String())
	return ""
}

// exported returns the smartctl_* of a page. Labels whose value is missing are left out: smartctl_exporter writes "unknown" for some.
func exported(t *testing.T, address string) map[string]float64 {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	page, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		t.Fatalf("%v: %.3000s", err, page)
	}
	all := make(map[string]float64)
	for name, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetValue() != "unknown" {
					labels = append(labels, l.GetName(), l.GetValue())
				}
			}
			if strings.HasPrefix(name, "smartctl_") {
				all[seriesKey(name, labels)] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
			}
		}
	}
	return all
}

// seriesKey is a series as text, its labels in order and those without a value left out.
func seriesKey(name string, labels []string) string {
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		if labels[i+1] != "" {
			pairs = append(pairs, labels[i]+"="+strconv.Quote(labels[i+1]))
		}
	}
	slices.Sort(pairs)
	return name + "{" + strings.Join(pairs, ",") + "}"
}

// renamed returns a capture as that of another device, for many captures are of /dev/sda; nil if the file is not one.
func renamed(t *testing.T, file, device string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v map[string]any
	if decoder.Decode(&v) != nil || at(v, "smartctl.exit_status") == nil {
		return nil
	}
	named, ok := v["device"].(map[string]any)
	if !ok {
		return nil
	}
	named["name"], named["info_name"] = device, device
	if text, err = json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestAgainstSmartctlExporter compares each series of smartctl_exporter with the probe's: of the captures of this package, and of those
// of CORPUS/smartctl_exporter/testdata.
func TestAgainstSmartctlExporter(t *testing.T) {
	program := os.Getenv("SMARTCTL_EXPORTER")
	if program == "" {
		t.Skip("needs smartctl_exporter in SMARTCTL_EXPORTER: run by hand or by make nightly, see internal/tools/README.md")
	}
	files := []string{"testdata/ata.json", "testdata/nvme.json", "testdata/sas.json"}
	more, err := filepath.Glob(filepath.Join(os.Getenv("CORPUS"), "smartctl_exporter/testdata/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, more...)
	dir, c := machine(t, nil)
	if err := os.Chmod(filepath.Join(dir, "smartctl"), 0o700); err != nil {
		t.Fatal(err)
	}
	var devices []string
	for _, file := range files {
		device, typ := fmt.Sprintf("/dev/c%d", len(devices)), ""
		if filepath.Base(file) == "sas.json" {
			typ = ";megaraid,1"
		}
		if text := renamed(t, file, device); text != nil {
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(device)+".json"), text, 0o600); err != nil {
				t.Fatal(err)
			}
			devices = append(devices, device+typ)
			c.Devices = append(c.Devices, Device{Device: device, Type: strings.TrimPrefix(typ, ";")})
		}
	}
	theirs := exported(t, startExporter(t, program, filepath.Join(dir, "smartctl"), devices))
	r := probes.NewRound(0)
	if err := newProbe(t, c).Collect(t.Context(), r); err != nil {
		t.Log(err)
	}
	ours := make(map[string]float64)
	for _, s := range r.Samples() {
		if strings.HasPrefix(s.Family.Name, "smartctl_") {
			ours[seriesKey(s.Family.Name, s.Labels)] = s.Value
		}
	}
	compared := 0
	for key, want := range theirs {
		name, _, _ := strings.Cut(key, "{")
		got, there := ours[key]
		switch {
		case name == "smartctl_exporter_build_info" || name == "smartctl_version": // of the programs, not of the disk
		case !there && want == 0 && slices.Contains([]string{"smartctl_device_block_size", "smartctl_device_capacity_blocks", "smartctl_device_capacity_bytes"}, name): // what is absent in the JSON is absent
		case !there:
			t.Errorf("%s %v of smartctl_exporter is missing", key, want)
		case got != want:
			t.Errorf("%s is %v, and %v of smartctl_exporter", key, got, want)
		default:
			compared++
		}
	}
	for key := range ours {
		_, there := theirs[key]
		// smartctl_device_status is the name that smartctl_exporter had before 0.10. Of a member of a RAID controller it has no SCSI counters.
		if !there && !strings.HasPrefix(key, "smartctl_device_status{") && !strings.Contains(key, `device="c2_megaraid_1"`) {
			t.Errorf("smartctl_exporter has no %s", key)
		}
	}
	if least := 60 + 50*len(more); compared < least {
		t.Errorf("%d series were compared, want %d or more", compared, least)
	}
	t.Logf("%d series of %d disks are equal", compared, len(devices))
}
