package nut

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// TestAgainstNutExporter compares each series of nut_exporter with the probe's, from one upsd with a device that plays a dump.
func TestAgainstNutExporter(t *testing.T) {
	program := os.Getenv("NUT_EXPORTER")
	if program == "" {
		t.Skip("needs nut_exporter in NUT_EXPORTER: run by hand, see internal/tools/README.md")
	}
	upsd, _, server := startUpsd(t)
	p := newProbe(t, Config{Target: upsd, UPS: []string{"demo"}})
	waitFor(t, server, func() bool { // until upsd has the last variable of its driver
		got, _ := round(t, p)
		return strings.Contains(got, prefix+"ups_temperature{")
	})
	host, port, err := net.SplitHostPort(upsd)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	cmd := exec.Command(program, "--nut.server="+host, "--nut.serverport="+port, "--nut.vars_enable=", "--web.listen-address="+address)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	for deadline := time.Now().Add(20 * time.Second); ; {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nut_exporter does not listen")
		}
		select {
		case <-done:
			t.Fatalf("nut_exporter ended: %s", said.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	r := probes.NewRound(0)
	if err := p.Collect(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	ours := make(map[string]float64)
	for _, s := range r.Samples() {
		ours[seriesKey(s.Family.Name, s.Labels)] = s.Value
	}
	const number = "a number or a version that names a thing, and counts nothing"
	differences := map[string]string{ // series of nut_exporter that the probe lacks
		"device_info":   "a serial number 000123 is 123 there",
		"device_serial": number, "ups_productid": number, "ups_firmware": number, "driver_version_internal": number,
		"driver_parameter_pollinterval": "the driver's configuration",
	}
	compared := 0
	theirs := exported(t, address, host, port, "")
	maps.Copy(theirs, exported(t, address, host, port, "ups.status"))
	for key, want := range theirs {
		got, there := ours[key]
		name, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), "{")
		switch {
		case !strings.HasPrefix(key, prefix):
		case differences[name] != "" && !there:
			delete(differences, name)
		case !there:
			t.Errorf("%s %v of nut_exporter is missing", key, want)
		case got != want:
			t.Errorf("%s is %v, and %v of nut_exporter", key, got, want)
		default:
			compared++
		}
	}
	if compared < 35 {
		t.Errorf("%d series were compared, want 35 or more: %v", compared, theirs)
	}
	for name, why := range differences {
		t.Errorf("%s is listed as different (%s), and is not", name, why)
	}
	t.Logf("%d series are equal", compared)
}

// exported returns the series of a page of the exporter: of all variables that are numbers, or of ups.status.
func exported(t *testing.T, address, host, port, variables string) map[string]float64 {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	page := fmt.Sprintf("http://%s/ups_metrics?ups=demo&server=%s&serverport=%s&variables=%s", address, host, port, variables)
	resp, err := client.Get(page)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v: %.2000s", page, err, text)
	}
	all := make(map[string]float64)
	for name, f := range families {
		for _, m := range f.GetMetric() {
			labels := []string{"ups", "demo"} // there the device is in the address of the page
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName(), l.GetValue())
			}
			all[seriesKey(name, labels)] = m.GetGauge().GetValue()
		}
	}
	return all
}

// seriesKey is a series as text, its labels in order and those without a value left out.
func seriesKey(name string, labels []string) string {
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		if labels[i+1] != "" {
			pairs = append(pairs, fmt.Sprintf("%s=%s", labels[i], strconv.Quote(labels[i+1])))
		}
	}
	slices.Sort(pairs)
	return name + "{" + strings.Join(pairs, ",") + "}"
}
