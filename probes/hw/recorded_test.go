package hw

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v4"
)

// recorded returns the series in a file: name and labels, and the value.
func recorded(t *testing.T, file string) (all [][2]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if at := strings.LastIndexByte(line, ' '); at > 0 && strings.HasPrefix(line, "hw_") {
			all = append(all, [2]string{line[:at], line[at+1:]})
		}
	}
	if len(all) < 10 {
		t.Fatalf("%s has %d series", file, len(all))
	}
	return all
}

// promtoolSeries are input_series of promtool: values as recorded until fault makes something else of them from the tenth minute on, up to the
// hundredth. fault may be nil; it returns the series that the rounds have then, of each series that they had.
func promtoolSeries(instance string, all [][2]string, fault func(series, value string) [][2]string) (input []map[string]string) {
	add := func(series, values string) {
		input = append(input, map[string]string{"series": strings.Replace(series, "{", fmt.Sprintf(`{job="bmc",instance=%q,`, instance), 1), "values": values})
	}
	for _, s := range all {
		now := [][2]string{s}
		if fault != nil {
			now = fault(s[0], s[1])
		}
		same := slices.IndexFunc(now, func(n [2]string) bool { return n[0] == s[0] })
		if same < 0 {
			add(s[0], s[1]+"x9 stale")
		}
		for i, n := range now {
			if i == same {
				add(n[0], s[1]+"x9 "+n[1]+"x90")
			} else {
				add(n[0], "_x9 _ "+n[1]+"x90")
			}
		}
	}
	return input
}

// promtool tests a file of tests beside the rules; without it the test is skipped by name.
func promtool(t *testing.T, tests []map[string]any) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs promtool, which is not installed")
		}
		t.Skip("needs promtool, which is not installed")
	}
	alerts, err := filepath.Abs(filepath.Join(rules, "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Dump(map[string]any{"rule_files": []string{alerts}, "evaluation_interval": "1m", "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tests.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), path, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out[:min(len(out), 4000)])
	}
}

// becomes returns a fault: the component of that name is in another state.
func becomes(name, state string) func(series, value string) [][2]string {
	return func(series, value string) [][2]string {
		if strings.HasPrefix(series, "hw_status{") && strings.Contains(series, fmt.Sprintf(`hw_name=%q`, name)) {
			return [][2]string{{regexp.MustCompile(`hw_state="\w+"`).ReplaceAllString(series, fmt.Sprintf(`hw_state=%q`, state)), "1"}}
		}
		return [][2]string{{series, value}}
	}
}

// vanishes returns a fault: the component of that name is gone.
func vanishes(name string) func(series, value string) [][2]string {
	return func(series, value string) [][2]string {
		if strings.Contains(series, fmt.Sprintf(`hw_name=%q`, name)) {
			return nil
		}
		return [][2]string{{series, value}}
	}
}

// reads returns a fault: the metric of that component has another value.
func reads(metric, name, now string) func(series, value string) [][2]string {
	return func(series, value string) [][2]string {
		if strings.HasPrefix(series, metric+"{") && strings.Contains(series, fmt.Sprintf(`hw_name=%q`, name)) {
			return [][2]string{{series, now}}
		}
		return [][2]string{{series, value}}
	}
}

// TestAlertsOnRecordings: on the recorded series of three vendors the alerts tell of the faults that the recordings have, and of each fault
// that comes, and of nothing else.
func TestAlertsOnRecordings(t *testing.T) {
	had := map[string][]string{ // what the recordings themselves have
		"contoso": {"HardwareDegraded CPU1", "HardwareDegraded Power Supply Bay 1", "HardwareDegraded SATA Bay 2", "HardwarePredictedFailure Power Supply Bay 1"},
	}
	var tests []map[string]any
	for _, c := range []struct {
		vendor, what string
		fault        func(series, value string) [][2]string
		more         []string // alerts, each with the component's name
	}{
		{"dell", "as recorded", nil, nil}, {"hpe", "as recorded", nil, nil}, {"contoso", "as recorded", nil, nil},
		{"dell", "a fan fails", becomes("System Board Fan1A", "failed"), []string{"HardwareFailed System Board Fan1A"}},
		{"dell", "a fan stands, without a state", reads("hw_fan_speed_rpm", "System Board Fan3B", "0"), []string{"HardwareFanSlow System Board Fan3B"}},
		{"dell", "a fan is gone", vanishes("System Board Fan8B"), []string{"HardwareMissing "}},
		{"dell", "a temperature passes its limit", reads("hw_temperature_celsius", "CPU1 Temp", "97"), []string{"HardwareTooHot CPU1 Temp"}},
		{"dell", "a power supply fails", becomes("PS1 Status", "failed"), []string{"HardwareFailed PS1 Status"}},
		{"hpe", "a power supply fails", becomes("HpeServerPowerSupply", "failed"), []string{"HardwareFailed HpeServerPowerSupply", "HardwareFailed HpeServerPowerSupply"}},
		{"hpe", "a temperature is critical", becomes("01-Inlet Ambient", "failed"), []string{"HardwareTooHot 01-Inlet Ambient"}},
		{"contoso", "a memory module fails", becomes("DIMM Slot 2", "failed"), []string{"HardwareFailed DIMM Slot 2"}},
		{"contoso", "a memory module is gone", vanishes("DIMM Slot 1"), []string{"HardwareMissing "}},
		{"contoso", "a disk predicts its failure", becomes("SATA Bay 1", "predicted_failure"), []string{"HardwarePredictedFailure SATA Bay 1"}},
		{"contoso", "a fan fails", becomes("Fan Bay 1", "failed"), []string{"HardwareFailed Fan Bay 1"}},
	} {
		all := recorded(t, filepath.Join(rules, "recorded", c.vendor+".prom"))
		input := promtoolSeries(c.vendor, all, c.fault)
		if c.fault != nil && len(input) > 0 && fmt.Sprint(input) == fmt.Sprint(promtoolSeries(c.vendor, all, nil)) {
			t.Errorf("%s, %s: the fault did not fire", c.vendor, c.what)
		}
		counts := map[string]int{}
		for _, a := range append(slices.Clone(had[c.vendor]), c.more...) {
			counts[a]++
		}
		var want []map[string]any
		for a, n := range counts {
			alert, name, _ := strings.Cut(a, " ")
			labels := fmt.Sprintf(`{alertname=%q,hw_name=%q}`, alert, name)
			if name == "" {
				labels = fmt.Sprintf(`{alertname=%q}`, alert)
			}
			want = append(want, map[string]any{"labels": labels, "value": n})
		}
		tests = append(tests, map[string]any{"name": c.vendor + ", " + c.what, "interval": "1m", "input_series": input, "promql_expr_test": []map[string]any{
			{"expr": `count by (alertname, hw_name) (ALERTS{alertstate="firing"})`, "eval_time": "60m", "exp_samples": want},
		}})
	}
	promtool(t, tests)
}

// TestHardwareDashboard: each panel and variable of the dashboard has data on recorded series: of three vendors' BMCs, a server, its disks, a UPS, GPUs.
func TestHardwareDashboard(t *testing.T) {
	text, err := os.ReadFile("../../deploy/mixin/dashboards/hardware.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		UID    string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct{ List []struct{ Definition string } }
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	var input []map[string]string
	names := map[string]bool{}
	for instance, file := range map[string]string{
		"dell": rules + "/recorded/dell.prom", "hpe": rules + "/recorded/hpe.prom", "contoso": rules + "/recorded/contoso.prom", "server": "../host/testdata/machine.prom",
		"disks": "../smart/testdata/golden.prom", "raid": "../raid/testdata/storcli64.prom", "kernel": "../kernel/testdata/golden.prom", "ups": "../nut/testdata/golden.prom", "gpu": "../nvidia/testdata/a100-sxm4-v12.prom", "card": "../nvidia/testdata/tesla-t4.prom",
	} {
		all := recorded(t, file)
		for _, s := range all {
			names[s[0][:strings.IndexByte(s[0], '{')]] = true
		}
		input = append(input, promtoolSeries(instance, all, nil)...)
	}
	fill := strings.NewReplacer("$job", ".*", "$instance", ".*")
	var checks []map[string]any
	check := func(place, expr string) {
		expr = fill.Replace(expr)
		tree, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		if err != nil {
			t.Errorf("%s: %v", place, err)
			return
		}
		for _, selectors := range parser.ExtractSelectors(tree) {
			for _, m := range selectors {
				if m.Name == "__name__" && !names[m.Value] {
					t.Errorf("%s reads %s, which no recording has", place, m.Value)
				}
			}
		}
		checks = append(checks, map[string]any{"expr": "count(" + expr + ") > bool 0", "eval_time": "60m", "exp_samples": []map[string]any{{"labels": "{}", "value": 1}}})
	}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			check("the panel "+p.Title, target.Expr)
		}
	}
	for _, v := range board.Templating.List {
		if inner, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
			check("the variable "+v.Definition, inner[:strings.LastIndex(inner, ",")])
		}
	}
	if len(checks) < 20 {
		t.Errorf("%d expressions were checked: the search is broken", len(checks))
	}
	promtool(t, []map[string]any{{"interval": "1m", "input_series": input, "promql_expr_test": checks}})
}
