package snmp

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// exporterConfig is our module in the format of Debian's prometheus-snmp-exporter (0.21,
// from before auth and modules were parted). JSON is YAML.
func exporterConfig(name string, m module) ([]byte, error) {
	type object = map[string]any
	var metrics []object
	for _, x := range m.metrics {
		if x.typ == typePhysAddress {
			x.typ = typePhysAddress48 // equal for addresses of six octets
		}
		o := object{"name": x.name, "oid": x.oid, "type": x.typ, "help": x.help}
		if len(x.enumValues) > 0 {
			o["enum_values"] = x.enumValues
		}
		var indexes, lookups []object
		for _, i := range x.indexes {
			indexes = append(indexes, object{"labelname": i.labelname, "type": i.typ})
		}
		for _, l := range x.lookups {
			lookups = append(lookups, object{"labels": l.labels, "labelname": l.labelname, "oid": l.oid, "type": l.typ})
		}
		if indexes != nil {
			o["indexes"] = indexes
		}
		if lookups != nil {
			o["lookups"] = lookups
		}
		metrics = append(metrics, o)
	}
	b, err := json.Marshal(object{name: object{
		"walk": m.walk, "get": m.get, "metrics": metrics, "version": 2, "auth": object{"community": "hwtest"},
	}})
	// Enumerations have numbers for keys, which JSON has not.
	return regexp.MustCompile(`"(\d+)":`).ReplaceAll(b, []byte("$1: ")), err
}

// startExporter runs Debian's snmp_exporter and returns its address.
func startExporter(t *testing.T, conf []byte) string {
	t.Helper()
	return startExporterProgram(t, "", conf)
}

// startExporterProgram runs the snmp_exporter at path, or Debian's if path is empty, and returns its address.
func startExporterProgram(t *testing.T, path string, conf []byte) string {
	t.Helper()
	addr, _ := runExporter(t, path, conf)
	return addr
}

// runExporter is startExporterProgram; pid is the process.
func runExporter(t *testing.T, path string, conf []byte) (addr string, pid int) {
	t.Helper()
	if path == "" {
		path = needProgram(t, "prometheus-snmp-exporter")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "snmp.yml")
	if err := os.WriteFile(file, conf, 0o600); err != nil {
		t.Fatal(err)
	}
	addr = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--config.file="+file, "--web.listen-address="+addr)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done; _ = log.Close() })
	for range 500 {
		if resp, err := http.Get("http://" + addr + "/"); err == nil {
			_ = resp.Body.Close()
			return addr, cmd.Process.Pid
		}
		select {
		case <-done:
			b, _ := os.ReadFile(log.Name())
			t.Fatalf("the exporter ended: %.2000s", b)
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatal("the exporter does not listen")
	return "", 0
}

func scrape(t *testing.T, addr, target, module string) map[string]*dto.MetricFamily {
	t.Helper()
	resp, err := http.Get(fmt.Sprintf("http://%s/snmp?target=%s&module=%s", addr, target, module))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 4000))
		t.Fatalf("scrape the exporter: %s: %s", resp.Status, b)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("scrape the exporter: %s, %v", resp.Status, err)
	}
	return families
}

// The same module over the same agent gives the same series, types and values as
// snmp_exporter.
func TestSameAsExporter(t *testing.T) {
	d := startSnmpd(t)
	for _, name := range []string{"system", "if_mib", "host_resources"} {
		t.Run(name, func(t *testing.T) {
			conf, err := exporterConfig(name, builtin[name])
			if err != nil {
				t.Fatal(err)
			}
			addr := startExporter(t, conf)
			p := newProbe(t, Config{Target: d.target("udp"), Auth: v2(), Modules: []string{name}})
			before, err := collect(t, p)
			if err != nil {
				t.Fatal(err)
			}
			families := scrape(t, addr, "127.0.0.1:"+strconv.Itoa(d.port), name)
			after, err := collect(t, p)
			if err != nil {
				t.Fatal(err)
			}
			lo, hi, types := lines(before), lines(after), make(map[string]string)
			for _, s := range before.Samples() {
				types[s.Family.Name] = string(s.Family.Type)
			}
			theirs := make(map[string]bool)
			for family, f := range families {
				if got, want := types[family], strings.ToLower(f.GetType().String()); got != want {
					t.Errorf("%s is a %q, the exporter says %q", family, got, want)
				}
				for _, m := range f.GetMetric() {
					s, v := exported(family, m)
					theirs[s] = true
					a, b := lo[s], hi[s]
					// It does not know scale and offset; see the comparison with snmpwalk.
					if family != "hrDiskStorageRemoveble" && !strings.HasPrefix(family, "snmp_scrape") && (v < min(a, b) || v > max(a, b)) {
						t.Errorf("%s = %v to %v, the exporter says %v", s, a, b, v)
					}
				}
			}
			ours := make(map[string]bool)
			for s := range lo {
				// Newer exporters tell about packets, Debian's does not yet.
				if !strings.HasPrefix(s, "snmp_scrape") {
					ours[s] = true
				}
			}
			for s := range theirs {
				if strings.HasPrefix(s, "snmp_scrape") {
					if _, ok := lo[strings.TrimSuffix(s, "{}")+`{module="`+name+`"}`]; !ok {
						t.Errorf("%s is missing", s)
					}
					delete(theirs, s)
				}
			}
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Errorf("series (-exporter +ours)\n%s", diff)
			}
			if len(ours) == 0 {
				t.Error("no series: the test proves nothing")
			}
		})
	}
}

// exported is one of the exporter's metrics in our notation.
func exported(family string, m *dto.Metric) (string, float64) {
	var labels []string
	for _, l := range m.GetLabel() {
		if l.GetValue() != "" {
			labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
		}
	}
	v := math.NaN()
	switch {
	case m.GetGauge() != nil:
		v = m.GetGauge().GetValue()
	case m.GetCounter() != nil:
		v = m.GetCounter().GetValue()
	case m.GetUntyped() != nil:
		v = m.GetUntyped().GetValue()
	}
	return family + "{" + strings.Join(labels, ",") + "}", v
}
