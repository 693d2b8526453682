package nut

import (
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"hwsagent/e2e/exportertest"
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
	address := exportertest.Start(t, 20*time.Second, program, "--nut.server="+host, "--nut.serverport="+port, "--nut.vars_enable=")
	r := probes.NewRound(0)
	if err := p.Collect(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	c := exportertest.Comparison{Exporter: "nut_exporter"}
	const number = "a number or a version that names a thing, and counts nothing"
	for name, why := range map[string]string{ // series of nut_exporter that the probe lacks
		"device_info":   "a serial number 000123 is 123 there",
		"device_serial": number, "ups_productid": number, "ups_firmware": number, "driver_version_internal": number,
		"driver_parameter_pollinterval": "the driver's configuration",
	} {
		c.Differences = append(c.Differences, exportertest.Difference{Series: prefix + name + "{", Ours: math.NaN(), Theirs: math.Inf(1), Why: why})
	}
	theirs := make(map[string]float64)
	for _, variables := range []string{"", "ups.status"} { // all that are numbers, and this one
		page := fmt.Sprintf("http://%s/ups_metrics?ups=demo&server=%s&serverport=%s&variables=%s", address, host, port, variables)
		maps.Copy(theirs, exportertest.Page(t, page, func(labels []string) []string {
			return append(labels, "ups", "demo") // there the device is in the address of the page
		}))
	}
	maps.DeleteFunc(theirs, func(key string, _ float64) bool { return !strings.HasPrefix(key, prefix) })
	if n := c.Compare(t, exportertest.Round(r), theirs); n < 35 {
		t.Errorf("%d series were compared, want 35 or more: %v", n, theirs)
	}
	c.AllUsed(t)
}
