package snmp

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hwsagent/probes"
	"hwsagent/probes/snmp/recording"
)

// TestOracleExporter reads each recorded device of CORPUS (see TestOracle) with every module of SNMP_YML that the device answers, and compares
// the samples with the output of the snmp_exporter SNMP_EXPORTER for the same device, without snmp_scrape_*. Then it does so with a
// made-up device for each module, as a module may be on no recorded device. The three are not in the
// repository, CORPUS, by the program SNMP_EXPORTER with the file SNMP_YML.
func TestOracleExporter(t *testing.T) {
	recordings, program, file, text := exporterOracle(t)
	whole, broken := parseYML(file, text, func(string) bool { return true })
	if len(broken) > 0 || len(whole.modules) == 0 {
		t.Fatalf("read %s: %d modules, %v", file, len(whole.modules), broken)
	}
	addr := startExporterProgram(t, program, text)
	all := &agreement{answered: map[string]int{}, madeUp: map[string]int{}, explained: map[string]int{}, differ: map[string]int{}, refused: map[string]int{}}
	work := make(chan string)
	var workers sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			plans := new(Plans)
			for f := range work {
				all.device(t, f, addr, file, whole, plans)
			}
		})
	}
	for _, f := range recordings {
		work <- f
	}
	close(work)
	workers.Wait()
	for _, name := range whole.names {
		all.madeUp[name] = compareMadeUp(t, addr, file, name, whole.modules[name].module)
	}
	all.print(t, len(recordings), whole.names)
}

// exporterOracle returns the inputs named by the environment: recordings, an snmp_exporter, and a file of modules with its text.
func exporterOracle(t *testing.T) (recordings []string, program, file string, text []byte) {
	t.Helper()
	corpus, program, file := os.Getenv("CORPUS"), os.Getenv("SNMP_EXPORTER"), os.Getenv("SNMP_YML")
	if corpus == "" || program == "" || file == "" {
		t.Skip("needs recordings in CORPUS, SNMP_EXPORTER and its modules in SNMP_YML: run by hand, see internal/tools/README.md")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return usableRecordings(t, corpus), program, file, text
}

// usableRecordings are the recordings below corpus that may be looked at.
func usableRecordings(t *testing.T, corpus string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus, "tests/snmpsim/*.snmprec"))
	if err != nil || len(files) == 0 {
		t.Skipf("there are no recordings of SNMP below %s: %v", corpus, err)
	}
	return slices.DeleteFunc(files, func(f string) bool { return !usable(f) || !strings.Contains(f, os.Getenv("ORACLE_ONLY")) })
}

// device compares the modules that one recording answers.
func (s *agreement) device(t *testing.T, path, exporter, file string, whole *ymlFile, plans *Plans) {
	rec, a, err := served(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer a.Close()
	for _, name := range answered(rec, whole) {
		p, err := probeOf(plans, a.Addr(), file, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		round := probes.NewRound(0)
		r := reading{module: name, device: strings.TrimSuffix(filepath.Base(path), ".snmprec"), rec: rec, metrics: whole.modules[name].metrics}
		r.ourErr = p.Collect(t.Context(), round)
		_ = p.Close()
		r.ours = withoutScrape(lines(round))
		maps.DeleteFunc(r.ours, func(s string, _ float64) bool { return strings.HasPrefix(s, "hwsagent_device_") })
		r.theirs, r.theirErr = printed(exporter, a.Addr(), name)
		s.compare(&r)
	}
}

// served is a recording and an agent that answers from it.
func served(path string) (*recording.Recording, *recording.Agent, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	rec, _, err := recording.Parse(f)
	if err != nil {
		return nil, nil, err
	}
	a, err := recording.Serve(rec)
	return rec, a, err
}

// answered are the modules of which the device has objects.
func answered(rec *recording.Recording, whole *ymlFile) (names []string) {
	for _, name := range whole.names {
		if m := &whole.modules[name].module; len(objectsBelow(rec, slices.Concat(m.walk, m.get)...)) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// probeOf is a probe that reads the modules, separated by commas, of the device.
func probeOf(plans *Plans, target, file, modules string) (*Probe, error) {
	c := Config{Target: target, ConfigFiles: []string{file}, Modules: strings.Split(modules, ","), Auth: Auth{Name: defaultAuth}, PacketTimeout: model.Duration(20 * time.Second)}
	return plans.New(c, nil, slog.New(slog.DiscardHandler))
}

// objectsBelow are the variables of the recording at and below the roots.
func objectsBelow(rec *recording.Recording, roots ...string) (found []gosnmp.SnmpPDU) {
	all := rec.All()
	numbers := func(v gosnmp.SnmpPDU) oid { return mustOID(strings.TrimPrefix(v.Name, ".")) }
	for _, root := range roots {
		at := mustOID(root)
		i, _ := slices.BinarySearchFunc(all, at, func(v gosnmp.SnmpPDU, o oid) int { return numbers(v).compare(o) })
		for ; i < len(all) && numbers(all[i]).hasPrefix(at); i++ {
			found = append(found, all[i])
		}
	}
	return found
}

// printed are the samples that the exporter prints of a module of a device, without those of the reading itself, or its words where it
// prints none.
func printed(addr, target, module string) (map[string]float64, error) {
	resp, err := uncompressed.Get(fmt.Sprintf("http://%s/snmp?target=%s&module=%s&auth=%s", addr, target, module, defaultAuth))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 4000)) // what came is enough
		return nil, fmt.Errorf("%s: %s", resp.Status, b)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	for family, f := range families {
		for _, m := range f.GetMetric() {
			s, v := exported(family, m)
			all[s] = v
		}
	}
	return withoutScrape(all), nil
}
