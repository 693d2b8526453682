//go:build linux

package host

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hwsagent/probes"
)

var update = flag.Bool("update", false, "write testdata/golden.prom anew")

// hostOnly are collectors that ask the kernel directly, so that no tree decides what
// they say.
var hostOnly = []string{"-filesystem", "-uname", "-os", "-time", "-timex"}

// TestGolden reads the fixtures and compares everything with testdata/golden.prom.
func TestGolden(t *testing.T) {
	c := fixtures(t)
	c.Collectors, c.HW = hostOnly, new(bool) // hw_* has a file of its own
	p, err := New(c, quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := collect(t, p)
	for key := range s.values {
		if strings.HasPrefix(key, "node_scrape_collector_duration_seconds") {
			delete(s.values, key)
		}
	}
	got := strings.ReplaceAll(s.String(), c.SysPath, "/sys")
	golden := filepath.Join("testdata", "golden.prom")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("the fixtures read differently (-want +got):\n%s", d)
	}
}

// TestLive reads this machine.
func TestLive(t *testing.T) {
	p, err := New(Config{}, quiet(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // what is cached must not change what is said
		s := collect(t, p)
		for _, key := range []string{`node_cpu_seconds_total{cpu="0",mode="user"}`, "node_memory_MemTotal_bytes", "node_load1", "node_boot_time_seconds"} {
			if s.values[key] <= 0 && key != "node_load1" {
				t.Errorf("%s is %v", key, s.values[key])
			}
		}
	}
}

func BenchmarkCollect(b *testing.B) {
	p, err := New(Config{}, quiet(), nil)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		r := probes.NewRound(0)
		if err := p.Collect(b.Context(), r); err != nil {
			b.Fatal(err)
		}
		n = len(r.Samples())
	}
	b.ReportMetric(float64(n), "samples/op")
}

// TestEveryCollectorHasAReader holds the two lists together.
func TestEveryCollectorHasAReader(t *testing.T) {
	makers := readerMakers()
	all := slices.Concat(collectorNames, hardwareNames)
	for _, name := range all {
		if makers[name] == nil {
			t.Errorf("%s has no reader", name)
		}
	}
	if len(makers) != len(all) {
		t.Errorf("there are %d readers for %d names", len(makers), len(all))
	}
}

// TestDocumentation holds the table of collectors in docs/reference/probes.md and the code together.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/probes.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for _, name := range slices.Concat(collectorNames, hardwareNames) {
		if !strings.Contains(doc, "\n| `"+name+"` |") {
			t.Errorf("the collector %s is not in the table", name)
		}
	}
	var patterns []*regexp.Regexp
	for _, m := range regexp.MustCompile("`((?:node|hw)_[a-z0-9_*]+)`").FindAllStringSubmatch(doc, -1) {
		patterns = append(patterns, regexp.MustCompile("^"+strings.ReplaceAll(m[1], "*", ".*")+"$"))
	}
	c := fixtures(t)
	c.Collectors = hostOnly
	documented := collect(t, mustNew(t, c)).types
	for name := range collect(t, mustNew(t, Config{})).types {
		documented[name] = ""
	}
	for name := range documented {
		if !slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(name) }) {
			t.Errorf("the family %s is not in the table", name)
		}
	}
}
