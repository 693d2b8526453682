package snmp

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Every module of a published file loads, alone and with all others, without a note of
// something unknown. SNMP_YML names the files, as in
//
//	SNMP_YML=snmp.yml:old/snmp.yml go test ./probes/snmp -run Published -v
func TestPublishedFiles(t *testing.T) {
	list := os.Getenv("SNMP_YML")
	if list == "" {
		t.Skip("SNMP_YML names no file; the published ones derive from vendors' MIBs and are not part of this repository")
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
		start := time.Now()
		p, err := newPlan(&Config{ConfigFiles: []string{all}, Modules: whole.names[:1]})
		took := time.Since(start)
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		runtime.KeepAlive(p)
		p, whole.modules = nil, nil
		runtime.GC()
		runtime.ReadMemStats(&after)
		t.Logf("%s: old=%v, %d modules, %d metrics, one module in %s; %v", path, whole.old, len(whole.names), metrics, took, err)
		if strings.Contains(path, "0.21") != whole.old {
			t.Errorf("old = %v", whole.old)
		}
	}
}
