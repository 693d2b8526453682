package replant

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// noVerdict finds the words of a run that ended otherwise than by a test's own verdict.
var noVerdict = regexp.MustCompile(`(?m)\[(build|setup) failed\]|^(panic|fatal error|signal): .*|^WARNING: DATA RACE|no tests to run`)

// red returns why the output of go test -v does not prove that the tests detected the mistake; nil if it does.
func red(proofs []proof, output string, failed bool) error {
	if words := noVerdict.FindString(output); words != "" {
		return fmt.Errorf("the run ended with %q, which is no test's verdict", words)
	}
	if !failed {
		return fmt.Errorf("the suite is green: %v did not notice", proofs)
	}
	for _, p := range proofs {
		if !hasLine(output, "--- FAIL: "+p.test+" ") {
			return fmt.Errorf("%v did not notice", p)
		}
		if !p.says.MatchString(output) {
			return fmt.Errorf("%v is red, but does not say %q", p, p.says)
		}
	}
	return nil
}

// green returns why the output does not prove that the tests pass without the mistake.
func green(proofs []proof, output string, failed bool) error {
	if failed {
		return fmt.Errorf("the tests are red without any mistake")
	}
	for _, p := range proofs {
		if !hasLine(output, "--- PASS: "+p.test+" ") {
			return fmt.Errorf("%v did not run", p)
		}
	}
	return nil
}

// hasLine reports whether a line begins so. Lines of subtests are indented.
func hasLine(output, begin string) bool {
	return slices.ContainsFunc(strings.Split(output, "\n"), func(line string) bool { return strings.HasPrefix(line, begin) })
}

func TestVerdicts(t *testing.T) {
	proofs := []proof{{pkg: "./wal", test: "TestX", says: regexp.MustCompile(`lost \d+`)}}
	const fail = "=== RUN   TestX\n    x_test.go:1: lost 3\n--- FAIL: TestX (0.00s)\nFAIL\n"
	if err := red(proofs, fail, true); err != nil {
		t.Error(err)
	}
	for name, output := range map[string]string{
		"build":      "# hwsagent/wal\nFAIL hwsagent/wal [build failed]\n",
		"panic":      fail + "panic: runtime error [recovered]\n",
		"timeout":    fail + "panic: test timed out after 1m\n",
		"other test": strings.ReplaceAll(fail, "TestX", "TestXY"),
		"subtest":    strings.ReplaceAll(fail, "--- FAIL: TestX", "    --- FAIL: TestX"),
		"other word": strings.ReplaceAll(fail, "lost", "found"),
	} {
		if err := red(proofs, output, true); err == nil {
			t.Errorf("%s: taken for a verdict", name)
		}
	}
	if err := red(proofs, fail, false); err == nil {
		t.Error("a green run is taken for a red one")
	}
	if err := green(proofs, "--- PASS: TestX (0.00s)\nok\n", false); err != nil {
		t.Error(err)
	}
	if green(proofs, "--- SKIP: TestX (0.00s)\nok\n", false) == nil || green(proofs, fail, true) == nil {
		t.Error("what did not pass is taken for green")
	}
}
