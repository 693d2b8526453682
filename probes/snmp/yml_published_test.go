package snmp

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every module of a published file loads, alone and with all others, without a note of
// something unknown. SNMP_YML names the files, as in
//
//	SNMP_YML=snmp.yml:old/snmp.yml go test ./probes/snmp -run Published -v
func TestPublishedFiles(t *testing.T) {
	list := os.Getenv("SNMP_YML")
	if list == "" {
		t.Skip("SNMP_YML names no file, and the published ones are not part of this repository: run by hand, see internal/tools/README.md")
	}
	for _, path := range filepath.SplitList(list) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole, broken := parseYML(path, text, func(string) bool { return true })
		if len(broken) > 0 || len(whole.modules) == 0 {
			t.Fatalf("%d modules, %v", len(whole.modules), broken)
		}
		metrics, all := 0, filepath.Join(t.TempDir(), "all.yml")
		if err := os.WriteFile(all, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range whole.names {
			p, err := newPlan(&Config{ConfigFiles: []string{all}, Modules: []string{name}})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, n := range p.notes {
				if n.Severe {
					t.Errorf("%s: %v", name, n)
				}
			}
			if got := len(p.modules[0].metrics); got != len(whole.modules[name].metrics) || got == 0 {
				t.Errorf("%s: %d metrics alone, %d with others", name, got, len(whole.modules[name].metrics))
			}
			metrics += len(p.modules[0].metrics)
		}
		t.Logf("%s: old=%v, %d modules, %d metrics", path, whole.old, len(whole.names), metrics)
	}
}

// Every module of a published file that Debian's snmpd answers gives the series and values of
// snmp_exporter: of Debian's for the old format, of SNMP_EXPORTER for the new one.
func TestPublishedAsExporter(t *testing.T) {
	list, newer := os.Getenv("SNMP_YML"), os.Getenv("SNMP_EXPORTER")
	if list == "" {
		t.Skip("SNMP_YML names no file: run by hand, see internal/tools/README.md")
	}
	d := startSnmpd(t)
	for _, path := range filepath.SplitList(list) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole, _ := parseYML(path, text, func(string) bool { return false })
		program := ""
		if !slices.Contains(whole.names, "default") && bytes.Contains(text, []byte("\nmodules:")) {
			if program = newer; newer == "" {
				continue
			}
		}
		addr, samples, answered := startExporterProgram(t, program, text), 0, 0
		for _, name := range whole.names {
			p := newProbe(t, Config{Target: d.target("udp"), ConfigFiles: []string{path}, Modules: []string{name}})
			before, err := collect(t, p)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			theirs := exporterLines(t, addr, "127.0.0.1:"+strconv.Itoa(d.port), name)
			after, err := collect(t, p)
			if err != nil {
				t.Fatal(err)
			}
			lo, hi := withoutScrape(lines(before)), withoutScrape(lines(after))
			for s, v := range theirs {
				a, ok := lo[s]
				slack := 0.0
				if strings.HasPrefix(s, "hrStorage") || strings.HasPrefix(s, "mem") {
					slack = 0.05 * a // memory goes up and down
				}
				if b := hi[s]; !ok || v < min(a, b)-slack || v > max(a, b)+slack {
					t.Errorf("%s: %s = %v to %v (%v), the exporter says %v", name, s, a, b, ok, v)
				}
			}
			for s := range lo {
				if _, ok := theirs[s]; !ok {
					t.Errorf("%s: the exporter does not have %s", name, s)
				}
			}
			if samples += len(theirs); len(theirs) > 0 {
				answered++
			}
		}
		t.Logf("%s: %d of %d modules answer, %d samples", path, answered, len(whole.names), samples)
	}
}
