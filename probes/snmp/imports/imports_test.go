package imports

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hwsagent/probes/snmp/library"
)

var update = flag.Bool("update", false, "write what is made of the files anew")

// told is a result with all its files.
func told(t *testing.T, r *Result, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.Write(&b, "DIR"); err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Texts() {
		fmt.Fprintf(&b, "\n== %s\n%s", x.Name, x.Text)
	}
	return b.String()
}

// TestImports checks the definitions made of small files of each dialect, and that each of them loads.
func TestImports(t *testing.T) {
	const mibs = "testdata/librenms/mibs"
	for name, read := range map[string]func() (*Result, error){
		"librenms":         func() (*Result, error) { return LibreNMS("testdata/librenms") },
		"profiles":         func() (*Result, error) { return Profiles("testdata/profiles", mibs) },
		"profiles-no-mibs": func() (*Result, error) { return Profiles("testdata/profiles", "") },
	} {
		r, err := read()
		got := told(t, r, err)
		file := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		dir := t.TempDir()
		for _, x := range r.Texts() {
			if err := os.WriteFile(filepath.Join(dir, x.Name), x.Text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := library.Load(dir); err != nil {
			t.Errorf("%s does not load: %v", name, err)
		}
	}
}

func TestLibreNMSNeedsItsDirectories(t *testing.T) {
	if _, err := LibreNMS(t.TempDir()); err == nil || !strings.Contains(err.Error(), "os_detection") {
		t.Errorf("an empty directory gives %v", err)
	}
	if _, err := Profiles(filepath.Join(t.TempDir(), "missing"), ""); err == nil {
		t.Error("a directory that is not there is no error")
	}
}

// TestLibreNMSWithoutMIBs reads the entries that need no names.
func TestLibreNMSWithoutMIBs(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/librenms")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "mibs")); err != nil {
		t.Fatal(err)
	}
	r, err := LibreNMS(dir)
	if err != nil || r.Definitions != 1 || r.Values == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if f := r.Files[0]; f.File != "mibs" || len(f.Left) != 1 {
		t.Errorf("the missing folder is not told: %+v", f)
	}
}

func TestLookup(t *testing.T) {
	m, err := openMIBs("testdata/librenms/mibs")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		module, name, oid    string
		scalar, column, text bool
		units                string
		decimals, enums      int
	}{
		{module: "ACME-MIB", name: "acmeTempValue", oid: "1.3.6.1.4.1.99999.1.1.1.1.1.4", column: true, units: "0.1 degrees Celsius"},
		{module: "ACME-MIB", name: "acmeTempState", oid: "1.3.6.1.4.1.99999.1.1.1.1.1.6", column: true, enums: 4},
		{module: "ACME-MIB", name: "acmeTempName", oid: "1.3.6.1.4.1.99999.1.1.1.1.1.3", column: true, text: true},
		{module: "ACME-MIB", name: "acmeInput", oid: "1.3.6.1.4.1.99999.1.1.1.3", scalar: true, units: "V", decimals: 3},
		{module: "ACME-MIB", name: "acmeTrap", oid: "1.3.6.1.4.1.99999.1.1.0.1"},
		{module: "ACME-ROOT-MIB", name: "acme", oid: "1.3.6.1.4.1.99999"},
		{module: "ACME-ROOT-MIB", name: "circle"}, {module: "ACME-MIB", name: "OBJECT-TYPE"}, {module: "ACME-MIB", name: "nowhere"}, {module: "NO-MIB", name: "x"},
	} {
		o, ok := m.lookup(c.module, c.name)
		if ok != (c.oid != "") || o.oid.String() != c.oid {
			t.Errorf("%s::%s is %v %v, want %s", c.module, c.name, o.oid, ok, c.oid)
			continue
		}
		if o.scalar != c.scalar || o.column != c.column || o.text != c.text || o.units != c.units || o.decimals != c.decimals || len(o.enums) != c.enums {
			t.Errorf("%s::%s is %+v", c.module, c.name, o)
		}
	}
}

// TestPreferredFolder takes the module of an operating system's own folder before others of its name.
func TestPreferredFolder(t *testing.T) {
	dir := t.TempDir()
	for i, folder := range []string{"a", ".", "b"} {
		text := fmt.Sprintf("X-MIB DEFINITIONS ::= BEGIN\nx OBJECT IDENTIFIER ::= { enterprises %d }\nEND", i)
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, "X-MIB.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := openMIBs(dir)
	if err != nil {
		t.Fatal(err)
	}
	for want, prefer := range map[string][]string{"1.3.6.1.4.1.0": {"a"}, "1.3.6.1.4.1.1": nil, "1.3.6.1.4.1.2": {"c", "b"}} {
		m.prefer = prefer
		if o, _ := m.lookup("X-MIB", "x"); o.oid.String() != want {
			t.Errorf("with %v it is %s, want %s", prefer, o.oid, want)
		}
	}
}

func TestQuantityOf(t *testing.T) {
	for _, c := range []struct {
		unit, name, metric string
		factor             float64
	}{
		{"0.1 Volt DC", "upsBatteryVoltage", "voltage", 0.1}, {"RMS Volts", "upsInputVoltage", "voltage", 1}, {"tenths of degrees Celsius", "x", "temperature", 0.1},
		{"hundredths of Amps", "x", "current", 0.01}, {"milliamperes", "x", "current", 1e-3}, {"{revolution}/min", "fan", "fan_speed", 1}, {"Cel", "x", "temperature", 1},
		{"percent", "upsEstimatedChargeRemaining", "charge", 0.01}, {"%", "cpuLoad", "", 0}, {"minutes", "upsEstimatedMinutesRemaining", "time_left", 60},
		{"seconds", "upTime", "", 0}, {"degrees Celsius", "tempHighLimit", "", 0}, {"0.3 V", "x", "", 0}, {"packets", "x", "", 0}, {"kWh", "x", "energy", 3.6e6},
		{"Watts", "administrator", "power", 1}, {"%", "relativeHumidity", "humidity", 0.01}, {"1/100 kW", "x", "power", 10},
	} {
		metric, _, factor, why := quantityOf(c.unit, c.name)
		if metric != c.metric && (c.metric != "" || why == "") || why == "" && factor-c.factor > 1e-12 {
			t.Errorf("%s of %s is %q by %v (%s), want %q by %v", c.unit, c.name, metric, factor, why, c.metric, c.factor)
		}
	}
}

func TestStatesByName(t *testing.T) {
	for _, c := range []struct {
		names map[string]string
		want  map[string]string
	}{
		{map[string]string{"1": "normal", "2": "nonCritical", "3": "critical", "4": "other"}, map[string]string{"normal(1)": "ok", "nonCritical(2)": "degraded", "critical(3)": "failed", "other(4)": "unknown"}},
		{map[string]string{"1": "on", "2": "off"}, nil}, {map[string]string{"1": "ok", "2": "absent"}, nil}, {map[string]string{"1": "failed"}, nil},
		{map[string]string{"0": "All is well", "1": "ok", "2": "error!"}, map[string]string{"All_is_well(0)": "unknown", "ok(1)": "ok", "error(2)": "failed"}},
	} {
		if d := cmp.Diff(c.want, statesByName(c.names)); d != "" {
			t.Errorf("%v (-want +got):\n%s", c.names, d)
		}
	}
}

func TestPerlExpression(t *testing.T) {
	for s, want := range map[string]string{`/^a\/b$/`: "^a/b$", "/x/i": "(?i:x)", "(.*(LOW|HIGH).*)": ".*(LOW|HIGH).*", "#a#u": "a", "/(?<=a)b/": "!", "/x/e": "!", "//": "!", "plain": "plain"} {
		got, ok := perlExpression(s)
		if !ok {
			got = "!"
		}
		if got != want {
			t.Errorf("%s is %s, want %s", s, got, want)
		}
	}
}

// check fails if a text that was made does not load: every mistake of a source has to be found before.
func check(t *testing.T, r *Result) {
	t.Helper()
	for _, x := range r.Texts() {
		if _, err := library.Parse(x.Name, x.Text); err != nil {
			t.Errorf("%v\n%s", err, x.Text)
		}
	}
	for _, f := range r.Files {
		if f.Definition == "" && f.Values > 0 && !slices.ContainsFunc(f.Left, func(l Left) bool { return l.Count > 0 }) {
			t.Errorf("%+v says nothing of what is left", f)
		}
	}
}

func FuzzMIB(f *testing.F) {
	for _, file := range []string{"testdata/librenms/mibs/acme/ACME-MIB", "testdata/librenms/mibs/acme/root.mib"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("A DEFINITIONS ::= BEGIN a OBJECT-TYPE SYNTAX INTEGER { x(1 ::= { b 1 } b OBJECT IDENTIFIER ::= { a 4294967296 '1'H \"")
	f.Fuzz(func(t *testing.T, text string) {
		m := &mibs{byName: map[string][]string{}, modules: map[string]*module{}}
		all := parseMIB(text)
		for _, mod := range all {
			m.modules["::"+mod.name] = mod
		}
		for _, mod := range all {
			for name := range mod.objects {
				if o, ok := m.lookup(mod.name, name); ok && (len(o.oid) < 4 || len(o.oid) > maxSubids) {
					t.Errorf("%s is %v", name, o.oid)
				}
			}
		}
	})
}

func FuzzLibreNMS(f *testing.F) {
	const dir = "testdata/librenms/resources/definitions/"
	for _, name := range []string{"acme.yaml", "broken.yaml"} {
		discovery, err := os.ReadFile(dir + "os_discovery/" + name)
		if err != nil {
			f.Fatal(err)
		}
		detection, err := os.ReadFile(dir + "os_detection/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(discovery), string(detection))
	}
	m, err := openMIBs("testdata/librenms/mibs")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, discovery, detection string) {
		m.prefer = nil
		r := &Result{}
		r.librenms(source{name: "f.yaml", text: []byte(discovery)}, []byte(detection), nil, m)
		check(t, r)
	})
}

func FuzzProfile(f *testing.F) {
	files, err := sources("testdata/profiles")
	if err != nil || len(files) < 4 {
		f.Fatal(files, err)
	}
	for _, s := range files {
		f.Add(string(s.text))
	}
	m, err := openMIBs("testdata/librenms/mibs")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		root, err := parseNode([]byte(text))
		if err != nil {
			return
		}
		p := &profile{mibs: m, names: map[string]string{"f.yaml": "profile-f", "_acme-base.yaml": "profile-_acme-base"}, File: File{File: "f.yaml"}, name: "profile-f"}
		p.read(root)
		r := &Result{}
		r.add(p.File, p.definition, "f.yaml")
		check(t, r)
	})
}
