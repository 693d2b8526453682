package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// events is what go test -json prints, less the fields that tally does not read.
const events = `
{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestGood"}
{"Action":"output","Package":"m/a","Test":"TestGood","Output":"    a_test.go:3: run by make e2e, says a test that passes\n"}
{"Action":"pass","Package":"m/a","Test":"TestGood"}
{"Action":"run","Package":"m/a","Test":"TestBad"}
{"Action":"fail","Package":"m/a","Test":"TestBad"}
{"Action":"run","Package":"m/a","Test":"TestFar"}
{"Action":"output","Package":"m/a","Test":"TestFar","Output":"    a_test.go:9: an end-to-end test: run by make e2e (HWSAGENT_E2E=1)\n"}
{"Action":"output","Package":"m/a","Test":"TestFar","Output":"--- SKIP: TestFar (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestFar"}
{"Action":"run","Package":"m/b","Test":"TestFar/one"}
{"Action":"output","Package":"m/b","Test":"TestFar/one","Output":"        b_test.go:12: takes minutes: run by hand\n"}
{"Action":"skip","Package":"m/b","Test":"TestFar/one"}
{"Action":"run","Package":"m/b","Test":"TestTool"}
{"Action":"output","Package":"m/b","Test":"TestTool","Output":"    b_test.go:2: needs snmpd (Debian: apt-get install snmpd)\n"}
{"Action":"skip","Package":"m/b","Test":"TestTool"}
{"Action":"run","Package":"m/b","Test":"TestRoot"}
{"Action":"output","Package":"m/b","Test":"TestRoot","Output":"    b_test.go:2: needs root\n"}
{"Action":"skip","Package":"m/b","Test":"TestRoot"}
{"Action":"run","Package":"m/b","Test":"TestNext"}
{"Action":"output","Package":"m/b","Test":"TestNext","Output":"    b_test.go:2: run by make e2e\n"}
{"Action":"skip","Package":"m/b","Test":"TestNext"}
{"Action":"fail","Package":"m/a"}
{"Action":"pass","Package":"m/b"}
`

func TestTally(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "far/go.mod", "far/testdata/go.mod", ".cache/x/go.mod", "near/main.go"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "events.json")
	if err := os.WriteFile(file, []byte(events), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, complete := range []bool{false, true} {
		var out strings.Builder
		err := run(&out, file, complete)
		want := `skipped: m/b.TestRoot: needs root
skipped: m/b.TestTool: needs snmpd (Debian: apt-get install snmpd)
2 tests ran, 1 failed in 1 packages, 2 skipped (above); 2 need make e2e, 1 are run by hand; modules not entered: far (make e2e, make nightly)
`
		if out.String() != want {
			t.Errorf("complete %v: printed\n%s\nwant\n%s", complete, &out, want)
		}
		if (err != nil) != complete || err != nil && (!strings.Contains(err.Error(), "TestTool") || strings.Contains(err.Error(), "TestRoot")) {
			t.Errorf("complete %v: %v", complete, err)
		}
	}
}
