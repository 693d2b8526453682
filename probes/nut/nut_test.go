package nut

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/config"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v4"

	"hwsagent/probes"
	"hwsagent/probes/hw"
)

var update = flag.Bool("update", false, "write testdata/golden.prom anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func demo(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/demo.dev")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestGolden(t *testing.T) {
	u := &upsd{answer: of(map[string]string{"demo": demo(t)})}
	u.serve(t)
	got, err := round(t, newProbe(t, Config{Target: u.address}))
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "golden.prom")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("the device reads differently (-want +got):\n%s", d)
	}
	none := false
	bare, err := round(t, newProbe(t, Config{Target: u.address, Raw: &none}))
	if err != nil || strings.Contains(bare, prefix) || !strings.Contains(bare, "hw_battery_charge_ratio") {
		t.Errorf("raw: false gives %v\n%s", err, bare)
	}
	u.stop()
	if h := u.lines(); !slices.Contains(h, "LOGOUT") || slices.ContainsFunc(h, func(l string) bool { return strings.HasPrefix(l, "LOGIN") }) {
		t.Errorf("it was asked %q", h)
	}
}

// TestDeviceGone: upsd's error about one device only affects that device's readings, and its states become unknown.
func TestDeviceGone(t *testing.T) {
	for code, want := range map[string]string{
		"DATA-STALE": "look at the cable", "DRIVER-NOT-CONNECTED": "its driver does not run", "UNKNOWN-UPS": "upsd has no device of this name", "ACCESS-DENIED": "look at upsd.users",
	} {
		devices := map[string]string{"a": demo(t), "b": demo(t)}
		u := &upsd{answer: of(devices)}
		u.serve(t)
		p := newProbe(t, Config{Target: u.address, UPS: []string{"a", "b", "never"}})
		devices["never"] = "ERR " + code
		first, err := round(t, p)
		if !errors.Is(err, probes.ErrPartial) || !strings.Contains(err.Error(), "never: "+code) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", code, err)
		}
		if !strings.Contains(first, `hw_status{hw_id="ups:never",hw_name="never",hw_state="unknown",hw_type="power_supply"} 1`) {
			t.Errorf("%s: a device that was never read has\n%s", code, first)
		}
		devices["a"] = "ERR " + code
		got, err := round(t, p)
		if !errors.Is(err, probes.ErrPartial) {
			t.Errorf("%s: %v", code, err)
		}
		for line := range strings.Lines(got) {
			if strings.Contains(line, `="ups:a`) && !strings.HasPrefix(line, "hw_status{") && !strings.HasPrefix(line, "hw_component_info{") {
				t.Errorf("%s: it still says %s", code, line)
			}
		}
		for _, line := range []string{`hw_status{hw_id="ups:a/battery",hw_name="a battery",hw_parent="ups:a",hw_state="unknown",hw_type="battery"} 1`,
			`hw_status{hw_id="ups:a",hw_name="a",hw_state="degraded",hw_type="power_supply"} 0`, `hw_battery_charge_ratio{hw_id="ups:b/battery"`} {
			if !strings.Contains(got, line) {
				t.Errorf("%s: %s is missing in\n%s", code, line, got)
			}
		}
		devices["a"] = demo(t)
		if again, _ := round(t, p); again != first {
			t.Errorf("%s: after it came back: %s", code, cmp.Diff(first, again))
		}
	}
}

func TestLogin(t *testing.T) {
	conf, ca := certificate(t)
	u := &upsd{answer: of(map[string]string{"demo": demo(t)}), secure: conf}
	u.serve(t)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("a \"b\" \\c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Config{Target: u.address, Username: "watcher", PasswordFile: file, StartTLS: true, TLSConfig: &config.TLSConfig{CAFile: ca}}
	if got, err := round(t, newProbe(t, c)); err != nil || !strings.Contains(got, "hw_battery_charge_ratio") {
		t.Errorf("%v\n%s", err, got)
	}
	c.PasswordFile += "-none"
	if _, err := round(t, newProbe(t, c)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the password's file: %v", err)
	}
	c.TLSConfig = nil
	if _, err := round(t, newProbe(t, c)); err == nil || !strings.Contains(err.Error(), "unknown authority: write the file of the CA that signed upsd's certificate in tls_config.ca_file") {
		t.Errorf("with a certificate of an unknown authority: %v", err)
	}
	u.stop()
	want := []string{"STARTTLS", "USERNAME watcher", `PASSWORD "a \"b\" \\c"`, "LIST UPS", "LIST VAR demo", "STARTTLS", "STARTTLS"}
	heard := slices.DeleteFunc(u.lines(), func(l string) bool { return l == "LOGOUT" }) // which connections end in any order
	if d := cmp.Diff(want, heard); d != "" {
		t.Errorf("it says (-want +got):\n%s", d)
	}
}

// TestRefusals has all that an upsd, or something else at its port, may answer.
func TestRefusals(t *testing.T) {
	long := "BEGIN LIST UPS\n" + strings.Repeat("UPS x \"y\"\n", maxDevices+1) + "END LIST UPS\n"
	for _, tc := range []struct {
		name, answer, want string
		c                  Config
	}{
		{"no TLS", "ERR FEATURE-NOT-CONFIGURED\n", "upsd has no certificate for TLS", Config{StartTLS: true}},
		{"TLS with more", "OK STARTTLS\nBEGIN", "more than its answer in clear", Config{StartTLS: true}},
		{"no user", "ERR ACCESS-DENIED\n", "send username: ACCESS-DENIED", Config{Username: "x"}},
		{"none", "BEGIN LIST UPS\nEND LIST UPS\n", "upsd has no device", Config{}},
		{"a web server", "HTTP/1.1 400 Bad Request\r\n", "is it upsd that listens there?", Config{}},
		{"a long line", strings.Repeat("x", maxLine+1) + "\n", "a line of more than 16384 bytes", Config{}},
		{"many lines", long, "more than 1000 lines", Config{}},
		{"a line of something else", "BEGIN LIST UPS\nVAR x y \"z\"\n", "has a line of something else", Config{}},
		{"an open quote", "BEGIN LIST UPS\nUPS x \"y\n", "an open quote", Config{}},
		{"an empty line", "\n", "an empty line", Config{}},
		{"an unknown error", "ERR OUT-OF-TEA\n", "list devices: OUT-OF-TEA", Config{}},
		{"half a list of variables", "BEGIN LIST VAR x\nVAR x ups.status \"OL\"\nEND LIST VAR y\n", "x: the list VAR x has a line of something else", Config{UPS: []string{"x"}}},
	} {
		u := &upsd{answer: func(string) string { return tc.answer }}
		u.serve(t)
		tc.c.Target = u.address
		got, err := round(t, newProbe(t, tc.c))
		if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, probes.ErrPartial) || got != "" {
			t.Errorf("%s: %v\n%s", tc.name, err, got)
		}
	}
}

// TestSilence: upsd takes the connection and says nothing; the round ends with its time.
func TestSilence(t *testing.T) {
	u := &upsd{answer: func(string) string { return "" }}
	u.serve(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := newProbe(t, Config{Target: u.address}).Collect(ctx, probes.NewRound(0))
	if err == nil || !strings.Contains(err.Error(), "upsd does not answer in time") {
		t.Errorf("the error is %v", err)
	}
	if len(u.lines()) > 1 {
		t.Errorf("it was asked %q", u.lines())
	}
}

func TestStates(t *testing.T) {
	for _, tc := range []struct {
		status       string
		ups, battery hw.Status
	}{
		{"OL", hw.OK, hw.OK}, {"OL CHRG", hw.OK, hw.OK}, {"OL BOOST", hw.OK, hw.OK}, {"OL TRIM", hw.OK, hw.OK}, {"OL CAL", hw.OK, hw.OK},
		{"OB DISCHRG", hw.Degraded, hw.OK}, {"OB LB", hw.Degraded | hw.PredictedFailure, hw.Degraded}, {"LB OB", hw.Degraded | hw.PredictedFailure, hw.Degraded},
		{"OL LB", hw.OK, hw.Degraded}, {"OL HB", hw.OK, hw.Degraded}, {"OL RB", hw.OK, hw.Degraded | hw.PredictedFailure},
		{"OL BYPASS", hw.Degraded, hw.OK}, {"OL OVER", hw.Degraded, hw.OK}, {"ALARM OL", hw.Degraded, hw.OK}, {"OFF", hw.Failed, hw.OK},
		{"FSD OB LB", hw.Degraded | hw.PredictedFailure, hw.Degraded}, {"OL NOCOMM", hw.Unknown, hw.Unknown}, {"WAIT", hw.Unknown, hw.Unknown},
		{"", hw.Unknown, hw.Unknown}, {"OL ECO", hw.OK, hw.OK},
	} {
		if ups, battery := states(tc.status); ups != tc.ups || battery != tc.battery {
			t.Errorf("%q: the device is %q, its battery %q", tc.status, ups, battery)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, tc := range []struct {
		name, value string
		want        float64
		ok          bool
	}{
		{"input.voltage", "229.7", 229.7, true}, {"input.voltage", "-5", -5, true}, {"battery.voltage", " 54.60 ", 54.6, true},
		{"ups.beeper.status", "enabled", 1, true}, {"outlet.1.status", "off", 0, true}, {"ups.productid", "0665", 0, false}, {"device.serial", "000123", 0, false},
		{"ups.firmware", "1.5", 0, false}, {"ups.firmware.aux", "1.5", 0, false}, {"driver.version", "2.8", 0, false}, {"driver.parameter.pollfreq", "30", 0, false},
		{"battery.date", "2012", 0, false}, {"input.voltage", "0x10", 0, false}, {"input.voltage", "nan", 0, false}, {"input.voltage", "1e999", 0, false},
		{"input.voltage", "", 0, false}, {"ups.test.result", "No test initiated", 0, false},
	} {
		if got, ok := number(variable{tc.name, tc.value}); got != tc.want || ok != tc.ok {
			t.Errorf("%s %q is %v, %t", tc.name, tc.value, got, ok)
		}
	}
}

// TestMeanings: each row of the tables is allowed by the vocabulary.
func TestMeanings(t *testing.T) {
	for suffix, q := range quantities {
		if !q.metric.Allows(q.kind, q.attributes) || !q.metric.Allows(hw.Battery, q.attributes) && q.kind != hw.Humidity {
			t.Errorf("%s: a %s may not have it", suffix, q.kind)
		}
		place, got, ok := meaning("outlet.12." + suffix)
		if !ok || place != "outlet.12" || got.metric != q.metric {
			t.Errorf("outlet.12.%s is %q, %v, %t", suffix, place, got, ok)
		}
	}
	for name, s := range special {
		if !s.metric.Allows(s.kind, s.attributes) {
			t.Errorf("%s: a %s may not have it", name, s.kind)
		}
	}
	for _, name := range []string{"input.frequency.nominal", "driver.voltage", "ups.power", "outlet.x.voltage", "voltage", "", "."} {
		if place, q, ok := meaning(name); ok {
			t.Errorf("%s means %v at %q", name, q, place)
		}
	}
}

func TestConfig(t *testing.T) {
	var c Config
	if err := yaml.Unmarshal([]byte("target: http://x\nups: [a b, c, c]\npassword: secret\npassword_file: x\ntls_config: {insecure_skip_verify: true}\n"), &c); err != nil {
		t.Fatal(err)
	}
	err := c.Validate()
	for _, want := range []string{"target: ", `ups[0]: "a b" is not a name`, `ups[2]: "c" is listed twice`, "password: give password or password_file, not both", "tls_config: is not used without starttls"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if errors.Join(errors.New("x"), err).Error() == "" || strings.Contains(err.Error(), "secret") {
		t.Error("the error shows the password")
	}
	clear := Config{Target: "192.0.2.1", Username: "u", Password: "p"}
	if err := clear.Validate(); err == nil || !strings.Contains(err.Error(), "in clear") {
		t.Errorf("a password in clear: %v", err)
	}
	if err := (&Config{Password: "p"}).Validate(); err == nil || !strings.Contains(err.Error(), "username: is missing") {
		t.Errorf("a password without a name: %v", err)
	}
	for in, want := range map[string]string{"": "127.0.0.1:3493", "ups.lan": "ups.lan:3493", "ups.lan:99": "ups.lan:99", "2001:db8::1": "[2001:db8::1]:3493", "[2001:db8::1]:7": "[2001:db8::1]:7",
		"[2001:db8::1]": "[2001:db8::1]:3493", "a:b": "", "a:0": "", ":1": "", "user@host": "", "a b": ""} {
		if got, err := (&Config{Target: in}).address(); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", in, got, err)
		}
	}
}

// TestOracle reads public dumps of devices: each number under its own name, and in hw_* in its unit. They are in
// directories of vendors outside of the repository, CORPUS.
func TestOracle(t *testing.T) {
	root := os.Getenv("CORPUS")
	if root == "" {
		t.Skip("needs dumps of devices in CORPUS: run by hand, see internal/tools/README.md")
	}
	var files []string
	for _, pattern := range []string{"*/*.dev", "*/*/*.dev"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Skipf("there are no dumps of devices in %s", root)
	}
	read, numbers, wrong, inHW := 0, 0, 0, 0
	for _, name := range files {
		if !permitted(filepath.Base(name)) {
			continue
		}
		read++
		dump, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n, bad, h := compare(t, filepath.Base(name), string(dump))
		numbers, wrong, inHW = numbers+n, wrong+bad, inHW+h
	}
	t.Logf("%d devices: %d numbers, %d wrong; %d readings in hw_*", read, numbers, wrong, inHW)
	if read == 0 || numbers == 0 {
		t.Error("nothing was read")
	}
}

// FuzzClient has any bytes for what upsd says.
func FuzzClient(f *testing.F) {
	f.Add("BEGIN LIST VAR x\nVAR x battery.charge \"97\"\nVAR x ups.status \"OL \\\"\"\nEND LIST VAR x\n")
	f.Add("ERR DATA-STALE\n")
	p, err := New(Config{}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, said string) {
		vars, err := clientOf(said).variables("x")
		if err != nil {
			return
		}
		if len(vars) > maxVars {
			t.Fatalf("%d variables", len(vars))
		}
		r := probes.NewRound(0)
		p.add(r, "x", vars)
		for _, s := range r.Samples() {
			if len(s.Labels)%2 != 0 || !regexp.MustCompile(`^[a-z][a-zA-Z0-9_]*$`).MatchString(s.Family.Name) {
				t.Errorf("%+v", s)
			}
		}
		_ = text(t, r)
	})
}

// TestDocumentation holds docs/probes/nut.md, the variables in docs/reference/probes.md, and the code together.
func TestDocumentation(t *testing.T) {
	var page []byte
	for _, name := range []string{"probes/nut.md", "reference/probes.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		page = append(page, text...)
	}
	for _, q := range quantities {
		if !strings.Contains(string(page), "`"+q.metric.Family().Name+"`") {
			t.Errorf("%s is not in the text", q.metric.Family().Name)
		}
	}
	for name, s := range special {
		if !strings.Contains(string(page), "`"+name+"`") || !strings.Contains(string(page), "`"+s.metric.Family().Name+"`") {
			t.Errorf("%s is not in the text, or its metric", name)
		}
	}
	for flag := range upsFlags {
		if !strings.Contains(string(page), "`"+flag+"`") {
			t.Errorf("the word %s is not in the text", flag)
		}
	}
	for flag := range batteryFlags {
		if !strings.Contains(string(page), "`"+flag+"`") {
			t.Errorf("the word %s is not in the text", flag)
		}
	}
}

// FuzzVariable: a variable of any name and value is a number or is none, and its meaning has a place and a kind.
func FuzzVariable(f *testing.F) {
	f.Add("battery.charge", "97")
	f.Add("input.L1-N.voltage", "-0.5")
	f.Add("ups.serial", "000123")
	f.Add("ups.status", "OL CHRG")
	f.Fuzz(func(t *testing.T, name, value string) {
		if v, ok := number(variable{name: name, value: value}); ok && (math.IsNaN(v) || math.IsInf(v, 0)) {
			t.Errorf("%q=%q is %v", name, value, v)
		}
		if place, q, ok := meaning(name); ok && (strings.ContainsAny(place, " \"") || q.scale == 0) {
			t.Errorf("%q means %q, %+v", name, place, q)
		}
		ups, battery := states(value)
		if ups.String() == "" && ups != 0 || battery.String() == "" && battery != 0 {
			t.Errorf("%q: %d, %d", value, ups, battery)
		}
		if _, err := split(value); err == nil && strings.Count(value, `"`)%2 == 1 && !strings.Contains(value, `\`) {
			t.Errorf("%q is a line, and its quotes do not end", value)
		}
	})
}

// TestReadings: frequencies, the limit of the runtime and whether it runs on its battery are read; numbers that mean no reading are refused.
func TestReadings(t *testing.T) {
	for _, c := range []struct{ vars, want string }{
		{"ups.status=OL|input.frequency=49.9|output.frequency=50|battery.runtime=3600|battery.runtime.low=300",
			"hw_battery_time_left_limit_seconds 300, hw_battery_time_left_seconds 3600, hw_frequency_hertz 49.9, hw_frequency_hertz 50, hw_power_supply_on_battery 0"},
		{"ups.status=OB DISCHRG|battery.runtime=0", "hw_battery_time_left_seconds 0, hw_power_supply_on_battery 1"},
		{"ups.status=OL|battery.runtime=0", "hw_power_supply_on_battery 0, refused hw_battery_time_left_seconds 0"},
		{"ups.status=OL|battery.runtime=65535", "hw_power_supply_on_battery 0, refused hw_battery_time_left_seconds 65535"},
		{"ups.status=OL NOCOMM|battery.runtime=60", "hw_battery_time_left_seconds 60"},
	} {
		var vars []variable
		for v := range strings.SplitSeq(c.vars, "|") {
			name, value, _ := strings.Cut(v, "=")
			vars = append(vars, variable{name: name, value: value})
		}
		var got []string
		for _, p := range components("u", vars) {
			for _, r := range p.Readings {
				got = append(got, fmt.Sprintf("%s %v", r.Metric.Family().Name, r.Value))
			}
			for _, r := range p.Refused {
				got = append(got, fmt.Sprintf("refused %s %v", r.Metric.Family().Name, r.Value))
			}
		}
		slices.Sort(got)
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v, want %s", c.vars, got, c.want)
		}
	}
}
