package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module     = "hwsagent"
	promModule = "github.com/prometheus/prometheus/"
)

// importRule binds one package directory and those below it, unless a rule with a
// longer directory binds them.
type importRule struct {
	dir string
	// ours are the directories of this module that may be imported, each with what is
	// below it. A package may always import what is below its own rule's directory.
	ours []string
	// not are those below the rule's directory that it must not import all the same.
	not []string
	// tests are directories of this module that only tests may import.
	tests []string
	// never are import paths (and what is below them) that no file outside tests may name.
	never []string
	// except are exceptions from neverAnywhere.
	except []string
}

// importRules says which packages of this repository each package may import.
func importRules() []importRule {
	testnet := []string{"internal/testnet"}
	return []importRule{
		{dir: "internal/refs"},
		{dir: "internal/spare"},
		{dir: "internal/meter"},
		{dir: "internal/redact", ours: []string{"internal/files"}},
		{dir: "internal/httpbound"},
		{dir: "internal/lastlines"},
		{dir: "internal/files"},
		{dir: "internal/loopback"},
		{dir: "internal/text"},
		{dir: "internal/version"},
		{dir: "wal", ours: []string{"internal/meter", "internal/refs", "internal/spare"}, not: []string{"wal/internal/segmenttest"}, tests: []string{"wal/internal/segmenttest", "agent/inspect/stock"}, never: []string{"net/http"}},
		{dir: "wal/queue", ours: []string{"wal/internal/segment"}, tests: []string{"wal/internal/savefile"}, never: []string{"os", "net/http"}},
		{dir: "wal/internal/segment", tests: []string{"wal/internal/segmenttest"}, never: []string{"os", "net/http"}},
		{dir: "wal/internal/disk", never: []string{"net/http"}},
		{dir: "wal/internal/savefile", ours: []string{"wal/internal/disk", "wal/internal/segment"}, never: []string{"net/http"}},
		{dir: "wal/internal/segmenttest", ours: []string{"wal/internal/segment"}},
		{dir: "internal/watchdog"},
		{dir: "remotewrite/reply"},
		{dir: "remotewrite/split"},
		{dir: "remotewrite/progress", ours: []string{"wal"}},
		{dir: "remotewrite/wire", tests: testnet},
		{dir: "remotewrite/config", ours: []string{"internal/loopback", "internal/redact"}},
		{dir: "remotewrite/client", ours: []string{"remotewrite/config", "remotewrite/wire", "remotewrite/reply", "internal/redact", "internal/httpbound", "internal/spare"}, tests: testnet},
		{dir: "remotewrite/metrics", ours: []string{"remotewrite/client", "remotewrite/wire", "internal/meter", "wal/queue"}, tests: []string{"remotewrite/config"}},
		{dir: "remotewrite/gate"},
		{dir: "remotewrite/protocol", ours: []string{"remotewrite/client", "remotewrite/reply", "remotewrite/wire"}},
		{dir: "remotewrite/client/cloud", ours: []string{"internal/redact", "remotewrite/config"}},
		{dir: "remotewrite/tenant", ours: []string{"remotewrite/config", "wal"}},
		{dir: "remotewrite/replay", ours: []string{"remotewrite", "wal"}},
		{dir: "remotewrite/deadletter", ours: []string{"remotewrite"}, tests: []string{"wal/queue"}},
		{dir: "internal/testnet"},
		{dir: "remotewrite", ours: []string{"internal/meter", "internal/refs", "wal"}, not: []string{"remotewrite/deadletter", "remotewrite/replay"}, tests: testnet, never: []string{promModule + "tsdb/wlog", promModule + "scrape"}},
		{dir: "probes", ours: []string{"internal/files", "internal/loopback", "internal/text", "internal/redact", "internal/refs", "internal/spare", "internal/httpbound", "internal/watchdog", "internal/panics", "internal/exposition", "internal/pages"}, tests: []string{"e2e/bmcsim", "e2e/exportertest"}},
		{dir: "receivers", ours: []string{"internal/files", "internal/text", "internal/loopback", "internal/redact", "internal/refs", "internal/spare", "internal/httpbound", "internal/watchdog", "internal/panics", "internal/exposition", "internal/pages"}},
		{dir: "agent/inputs", ours: []string{"internal/refs", "internal/spare", "internal/panics"}, tests: []string{"wal"}},
		{dir: "agent/pull", ours: []string{"agent/inputs", "internal/panics", "internal/exposition", "internal/pages", "internal/spare"}, tests: []string{"wal"}},
		{dir: "internal/pages", ours: []string{"internal/spare"}},
		{dir: "internal/panics", ours: []string{"internal/text"}},
		{dir: "receivers/otlp", ours: []string{"receivers", "internal/panics"}},
		{dir: "internal/exposition", except: []string{promModule + "model/textparse"}},
		{dir: "receivers/scrape", ours: []string{"internal/files", "internal/refs", "internal/meter", "internal/redact", "internal/httpbound", "internal/watchdog", "internal/panics", "internal/exposition", "internal/pages"}, except: []string{promModule + "discovery/targetgroup", promModule + "model/textparse"}},
		{dir: "agent/status", ours: []string{"internal/text"}},
		{dir: "agent/top", ours: []string{"agent/status", "internal/text"}},
		{dir: "agent/web", ours: []string{"agent/hardware/inventory", "agent/status", "internal/files", "internal/text", "internal/httpbound", "internal/loopback"}},
		{dir: "agent", ours: []string{"internal/loopback", "internal/meter", "internal/redact", "internal/httpbound", "internal/watchdog", "internal/panics", "internal/exposition", "internal/files", "internal/pages", "internal/text", "internal/version", "wal", "remotewrite", "probes", "receivers"}, tests: []string{"internal/lastlines"}},
		{dir: "agent/config", ours: []string{"internal/text", "internal/loopback", "internal/files", "probes", "receivers", "internal/redact", "remotewrite/config", "wal/queue"}, tests: []string{"remotewrite/client"}},
		{dir: "agent/check", ours: []string{"agent/config", "agent/control", "agent/status", "internal/files", "internal/text", "internal/version", "probes", "receivers", "remotewrite/client", "remotewrite/config", "remotewrite/wire", "wal"}},
		{dir: "agent/control", ours: []string{"agent/config", "internal/text"}},
		{dir: "agent/queues", ours: []string{"agent/config", "agent/control", "agent/events", "agent/history", "agent/inspect", "agent/selector", "agent/status", "internal/panics", "internal/text", "internal/version", "receivers/pushgateway", "remotewrite", "wal"}},
		{dir: "agent/targets", ours: []string{"agent/clock", "agent/config", "agent/queues", "agent/status", "internal/meter", "internal/version", "internal/watchdog", "remotewrite", "wal"}},
		{dir: "agent/clock", ours: []string{"agent/status", "internal/meter"}},
		{dir: "agent/hardware", ours: []string{"agent/check", "agent/config", "agent/status", "internal/files", "internal/panics", "internal/redact", "internal/text", "probes"}},
		{dir: "agent/selector"},
		{dir: "agent/inspect", ours: []string{"internal/text", "agent/selector", "agent/status", "wal"}},
		{dir: "agent/inspect/stock"},
		{dir: "agent/demo/receiver"},
		{dir: "cmd/hwsagent", ours: []string{"agent", "internal/lastlines", "internal/text", "internal/version", "internal/watchdog"}},
		{dir: "e2e/exportertest", ours: []string{"probes"}},
		{dir: "e2e", ours: []string{"agent/demo/receiver", "probes/snmp/recording", "remotewrite/reply", "internal/tools/benchagents/hardware"}},
		{dir: "internal/tools", ours: []string{"e2e"}},
		{dir: "internal/tools/benchagents"},
		{dir: "e2e/bmcsim"},
		{dir: "e2e/hostile"},
		{dir: "e2e/lab/guest"},
		{dir: "e2e/mutate"},
		{dir: "internal/tools/results"},
		{dir: "internal/tools/reference"},
		{dir: "internal/tools/tally"},
		{dir: "internal/tools/tier"},
	}
}

// neverAnywhere returns what no file outside tests may import: most of these pull in Prometheus'
// service discoveries or its sender, whose promises differ from ours.
func neverAnywhere() []string {
	return []string{
		promModule + "scrape",
		promModule + "config",
		promModule + "discovery",
		promModule + "storage/remote",
		promModule + "tsdb/agent",
		promModule + "model/textparse", // internal/exposition has parsers that end for every body
		"github.com/stretchr/testify",
	}
}

// source is one parsed Go file, its path relative to the module's root.
type source struct {
	file string
	ast  *ast.File
}

func (s source) dir() string  { return path.Dir(s.file) }
func (s source) isTest() bool { return strings.HasSuffix(s.file, "_test.go") }

func (s source) imports(t *testing.T) []string {
	var paths []string
	for _, spec := range s.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: import %s: %v", s.file, spec.Path.Value, err)
		}
		paths = append(paths, p)
	}
	return paths
}

// sources parses every Go file of the module, build constraints notwithstanding. It
// reads the files in this process, so that the test cache knows what was read.
func sources(t *testing.T, mode parser.Mode) []source {
	t.Helper()
	var all []source
	root := "../.."
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p == root {
				return nil
			}
			if name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
				return filepath.SkipDir // another module, which the agent is not built from
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, mode|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse %s: %w", p, err)
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		all = append(all, source{file: filepath.ToSlash(rel), ast: f})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("found only %d Go files below %s: the walk is broken", len(all), root)
	}
	return all
}

// below reports whether p is root or lies below it.
func below(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

// ruleFor returns the most specific rule that binds a directory.
func ruleFor(rules []importRule, dir string) (importRule, bool) {
	var best importRule
	found := false
	for _, r := range rules {
		if below(dir, r.dir) && (!found || len(r.dir) > len(best.dir)) {
			best, found = r, true
		}
	}
	return best, found
}

// broken reports which rule the import of p by a file breaks, or "".
func broken(rules []importRule, dir string, isTest bool, p string) string {
	rule, ok := ruleFor(rules, dir)
	if !ok {
		return "no import rule binds this directory: add it to importRules"
	}
	if p == module || strings.HasPrefix(p, module+"/") {
		ours := strings.TrimPrefix(p, module+"/")
		if isTest && slices.Contains([]string{"internal/tools/results", "internal/tools/reference", "internal/tools/tier"}, ours) {
			return "" // every test may write its figures down, hold a page to the code, and ask how much to try
		}
		within := func(dir string) bool { return below(ours, dir) }
		if isTest && slices.ContainsFunc(rule.tests, within) {
			return ""
		}
		if slices.ContainsFunc(rule.not, within) {
			return fmt.Sprintf("%s must never import %v", rule.dir, rule.not)
		}
		if below(ours, rule.dir) {
			return ""
		}
		if slices.ContainsFunc(rule.ours, within) {
			return ""
		}
		return fmt.Sprintf("%s may import only %v of ours", rule.dir, rule.ours)
	}
	if isTest {
		return ""
	}
	for _, never := range append(neverAnywhere(), rule.never...) {
		if below(p, never) && !slices.ContainsFunc(rule.except, func(e string) bool { return below(p, e) }) {
			return fmt.Sprintf("%s must never import it", rule.dir)
		}
	}
	return ""
}

func TestImports(t *testing.T) {
	rules := importRules()
	unused := make(map[string]bool)
	for _, r := range rules {
		unused[r.dir] = true
	}
	for _, s := range sources(t, parser.ImportsOnly) {
		for d := range unused {
			if below(s.dir(), d) {
				delete(unused, d)
			}
		}
		for _, p := range s.imports(t) {
			if why := broken(rules, s.dir(), s.isTest(), p); why != "" {
				t.Errorf("%s imports %s: %s", s.file, p, why)
			}
		}
	}
	for d := range unused {
		t.Errorf("a rule binds %s, which has no Go file", d)
	}
}

// TestImportRulesBite proves that the rules refuse what they are there to refuse.
func TestImportRulesBite(t *testing.T) {
	for _, tc := range []struct {
		dir    string
		test   bool
		path   string
		broken bool
	}{
		{"internal/redact", false, "hwsagent/remotewrite", true},
		{"remotewrite", false, "hwsagent/internal/redact", true},
		{"remotewrite", false, "hwsagent/remotewrite/client", false},
		{"remotewrite", false, "hwsagent/remotewrite/deadletter", true},
		{"remotewrite", false, "hwsagent/internal/testnet", true},
		{"remotewrite", true, "hwsagent/internal/testnet", false},
		{"remotewrite/client", false, "hwsagent/remotewrite", true},
		{"remotewrite/client", false, "hwsagent/remotewrite/wire", false},
		{"remotewrite/client", false, "hwsagent/wal", true},
		{"remotewrite/client", false, "hwsagent/internal/testnet", true},
		{"remotewrite/config", false, "hwsagent/remotewrite/wire", true},
		{"remotewrite/wire", false, "hwsagent/wal", true},
		{"remotewrite/tenant", false, "hwsagent/remotewrite", true},
		{"remotewrite/tenant", false, "hwsagent/wal", false},
		{"remotewrite/replay", false, "hwsagent/remotewrite", false},
		{"remotewrite", false, "hwsagent/remotewrite/replay", true},
		{"probes/exec", false, "hwsagent/internal/redact", false},
		{"receivers/scrape", false, "hwsagent/internal/redact", false},
		{"wal", false, "hwsagent/internal/redact", true},
		{"wal", false, "hwsagent/remotewrite", true},
		{"wal", false, "net/http", true},
		{"wal", false, "hwsagent/wal/internal/segment", false},
		{"wal", false, "hwsagent/wal/internal/segmenttest", true},
		{"wal", true, "hwsagent/wal/internal/segmenttest", false},
		{"wal/internal/segment", false, "hwsagent/wal", true},
		{"wal/internal/savefile", false, "hwsagent/wal/internal/segment", false},
		{"wal/internal/savefile", false, "hwsagent/wal/internal/disk", false},
		{"wal/internal/savefile", false, "hwsagent/wal", true},
		{"wal/internal/disk", false, "hwsagent/wal/internal/segment", true},
		{"wal/internal/segment", false, "os", true},
		{"wal", true, "net/http", false},
		{"wal", false, promModule + "tsdb/wlog", false},
		{"wal", false, promModule + "config", true},
		{"remotewrite", false, "hwsagent/wal", false},
		{"remotewrite", false, "hwsagent/probes", true},
		{"remotewrite", true, "hwsagent/probes", true},
		{"remotewrite", false, promModule + "tsdb/wlog", true},
		{"remotewrite", false, promModule + "storage", false},
		{"receivers/scrape", false, promModule + "scrape", true},
		{"receivers/scrape", false, promModule + "discovery/targetgroup", false},
		{"receivers/scrape", false, promModule + "discovery/dns", true},
		{"receivers/scrape", false, promModule + "config", true},
		{"receivers/scrape", false, promModule + "storage/remote", true},
		{"receivers/otlp", false, promModule + "scrape", true},
		{"receivers/otlp", false, promModule + "storage/remote", true},
		{"receivers/otlp", false, promModule + "storage/remote/otlptranslator/prometheusremotewrite", true},
		{"receivers/remotewrite", false, promModule + "config", true},
		{"agent", false, promModule + "config", true},
		{"remotewrite", false, promModule + "storage/remote", true},
		{"remotewrite", true, promModule + "storage/remote", false},
		{"remotewrite/deadletter", false, "hwsagent/remotewrite", false},
		{"remotewrite", false, "hwsagent/remotewrite/reply", false},
		{"remotewrite/reply", false, "hwsagent/remotewrite", true},
		{"remotewrite/reply", false, "hwsagent/internal/redact", true},
		{"remotewrite", false, "hwsagent/remotewrite/split", false},
		{"remotewrite/split", false, "hwsagent/remotewrite/reply", true},
		{"probes/host", false, "hwsagent/probes", false},
		{"probes/host", false, "hwsagent/wal", true},
		{"probes/exposition", false, "hwsagent/internal/exposition", false},
		{"probes/host", false, "hwsagent/agent/inputs", true},
		{"probes/host", false, "hwsagent/internal/panics", false},
		{"receivers/scrape", false, "hwsagent/internal/panics", false},
		{"receivers/scrape", false, "hwsagent/internal/exposition", false},
		{"receivers/otlp", false, "hwsagent/agent/inputs", true},
		{"internal/panics", false, "hwsagent/internal/refs", true},
		{"internal/exposition", false, "hwsagent/agent/inputs", true},
		{"agent/inputs", false, "hwsagent/internal/panics", false},
		{"internal/exposition", false, promModule + "model/textparse", false},
		{"receivers/promtext", false, promModule + "model/textparse", true},
		{"probes/exposition", false, promModule + "model/textparse", true},
		{"agent/web", false, "hwsagent/wal", true},
		{"agent/web", false, "hwsagent/agent/status", false},
		{"agent/status", false, "hwsagent/agent", true},
		{"agent/status", false, "hwsagent/agent/web", true},
		{"agent/status", false, "hwsagent/remotewrite", true},
		{"agent", false, "hwsagent/agent/web", false},
		{"agent", false, "hwsagent/agent/config", false},
		{"agent/config", false, "hwsagent/agent", true},
		{"agent/config", false, "hwsagent/remotewrite/config", false},
		{"agent/config", false, "hwsagent/remotewrite", true},
		{"agent/config", false, "hwsagent/agent/web", true},
		{"agent/inspect", false, "hwsagent/agent", true},
		{"agent/inspect", false, "hwsagent/agent/inspect/stock", false},
		{"agent/selector", false, "hwsagent/agent", true},
		{"agent/queues", false, "hwsagent/agent", true},
		{"agent/queues", false, "hwsagent/agent/control", false},
		{"agent/targets", false, "hwsagent/agent", true},
		{"agent/targets", false, "hwsagent/agent/queues", false},
		{"agent/demo", false, "hwsagent/agent/demo/receiver", false},
		{"agent/demo/receiver", false, "hwsagent/agent", true},
		{"cmd/hwsagent", false, "hwsagent/agent", false},
		{"cmd/hwsagent", false, "hwsagent/agent/demo", false},
		{"cmd/hwsagent", false, "hwsagent/wal", true},
		{"e2e", true, "hwsagent/agent", true},
		{"e2e", true, "hwsagent/agent/demo", true},
		{"e2e", true, "hwsagent/agent/demo/receiver", false},
		{"wal", true, "hwsagent/internal/tools/results", false},
		{"wal", false, "hwsagent/internal/tools/results", true},
		{"walrus", false, "fmt", true},
	} {
		if why := broken(importRules(), tc.dir, tc.test, tc.path); (why != "") != tc.broken {
			t.Errorf("%s (test %t) imports %s: got %q, want broken = %t", tc.dir, tc.test, tc.path, why, tc.broken)
		}
	}
}

// TestNoInitNorGrabBags keeps two habits out: registration by init, and packages whose
// name says nothing.
func TestNoInitNorGrabBags(t *testing.T) {
	for _, s := range sources(t, 0) {
		if slices.Contains([]string{"util", "utils", "common", "types", "model", "helpers"}, s.ast.Name.Name) {
			t.Errorf("%s: package %s: name it after what it provides", s.file, s.ast.Name.Name)
		}
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has a func init: construct it where it is used", s.file)
			}
		}
	}
}
