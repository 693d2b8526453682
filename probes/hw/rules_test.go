package hw

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rules is where the alerts on hardware are.
const rules = "../../deploy/mixin/hardware"

// TestRules has promtool test the alerts and the sums.
func TestRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs promtool, which is not installed")
		}
		t.Skip("needs promtool, which is not installed")
	}
	cmd := exec.CommandContext(t.Context(), promtool, "test", "rules", "rules_test.yaml", "sums_test.yaml")
	cmd.Dir = rules
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRulesUseTheVocabulary: each metric, state and kind that the rules name is there, and each alert has a test.
func TestRulesUseTheVocabulary(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(rules, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text, tests := read("rules.yaml")+read("sums.yaml"), read("rules_test.yaml")
	var known []string
	for i := range table {
		known = append(known, Metric(i).Family().Name)
		known = append(known, strings.Fields(table[i].attributes)...)
	}
	known = append(known, "hw_id", "hw_name", "hw_parent", "hw_type")
	for _, name := range regexp.MustCompile(`\bhw_[a-z_]+`).FindAllString(text, -1) {
		if !slices.Contains(known, name) {
			t.Errorf("there is no %s", name)
		}
	}
	for _, m := range regexp.MustCompile(`hw_(type|state)[=!~]+"([^"]+)"`).FindAllStringSubmatch(text, -1) {
		words := kinds[:]
		if m[1] == "state" {
			words = states[:]
		}
		for word := range strings.SplitSeq(m[2], "|") {
			if !slices.Contains(words, word) {
				t.Errorf("there is no %s %q", m[1], word)
			}
		}
	}
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(text, -1)
	if len(alerts) < 10 {
		t.Errorf("found only %d alerts", len(alerts))
	}
	for _, a := range alerts {
		if !regexp.MustCompile(`alertname: ` + a[1] + `\b`).MatchString(tests) {
			t.Errorf("%s has no test", a[1])
		}
	}
}
