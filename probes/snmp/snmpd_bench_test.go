package snmp

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"hwsagent/probes"
)

// installedSoftware reads HOST-RESOURCES-MIB's table of packages, the largest that a plain snmpd has: five columns, two of them
// texts, with the package's name as a label.
const installedSoftware = `
modules:
  software:
    walk: [1.3.6.1.2.1.25.6.3]
    max_repetitions: 100
    metrics:
      - {name: hrSWInstalledIndex, oid: 1.3.6.1.2.1.25.6.3.1.1, type: gauge, indexes: [&at {labelname: hrSWInstalledIndex, type: gauge}], lookups: &name [{labels: [hrSWInstalledIndex], labelname: hrSWInstalledName, oid: 1.3.6.1.2.1.25.6.3.1.2, type: DisplayString}]}
      - {name: hrSWInstalledType, oid: 1.3.6.1.2.1.25.6.3.1.4, type: gauge, indexes: [*at], lookups: *name}
      - {name: hrSWInstalledDate, oid: 1.3.6.1.2.1.25.6.3.1.5, type: DateAndTime, indexes: [*at], lookups: *name}
`

// BenchmarkProbeSnmpd counts the variables that a whole round of a probe reads from one device: requests, decoding, and samples
// with their labels. snmpd runs on the same processors.
func BenchmarkProbeSnmpd(b *testing.B) {
	d := startSnmpd(b)
	file := filepath.Join(b.TempDir(), "snmp.yml")
	if err := os.WriteFile(file, []byte(installedSoftware), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		auth Auth
		aim  float64 // variables per second
	}{{"v2c", v2(), 50_000}, {"v3", sealed, 30_000}} {
		b.Run(c.name, func(b *testing.B) {
			p := newProbe(b, Config{Target: d.target("udp"), Auth: c.auth, ConfigFiles: []string{file}, Modules: []string{"software"}, PacketTimeout: model.Duration(20 * time.Second)})
			b.ReportAllocs()
			variables := 0
			r := probes.NewRound(0)
			for b.Loop() {
				r.Reset(0) // as the runner uses rounds again
				if err := p.Collect(b.Context(), r); err != nil {
					b.Fatal(err)
				}
				for _, s := range r.Samples() {
					if s.Family.Name == "snmp_scrape_pdus_returned" {
						variables += int(s.Value)
					}
				}
			}
			rate := float64(variables) / b.Elapsed().Seconds()
			b.ReportMetric(rate, "variables/s")
			if variables == 0 {
				b.Fatal("no variable was read")
			}
			if os.Getenv("SNMP_RATE") != "" && rate < c.aim {
				b.Errorf("%.0f variables per second, want %.0f", rate, c.aim)
			}
		})
	}
}
