package library

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"hwsagent/internal/tools/reference"
)

var update = flag.Bool("update", false, "write docs/reference/snmp-library.md anew")

// page is the table of definitions as the documentation has it.
func page(t *testing.T) string {
	l, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| vendor or standard | definition | families | MIBs | components | values |\n|---|---|---|---|---|---|\n")
	all := slices.Clone(l.Definitions())
	slices.SortStableFunc(all, func(a, b *Definition) int {
		return strings.Compare(strings.ToLower(a.Vendor), strings.ToLower(b.Vendor))
	})
	for _, d := range all {
		families, mibs, kinds := map[string]bool{}, map[string]bool{}, map[string]bool{}
		values := 0
		for _, x := range d.detects {
			if x.family != "" {
				families["`"+x.family+"`"] = true
			}
		}
		for _, x := range d.tables {
			mibs[x.mib] = true
			values += len(x.values)
			for _, v := range x.values {
				if v.metricBy != nil {
					for _, q := range v.metricBy.all() {
						kinds[q.kind.String()] = true
					}
					continue
				}
				kinds[v.kindFor(x, v.quantity).String()] = true
			}
		}
		list := func(m map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(m)), ", ") }
		vendor := d.Vendor
		if vendor == "" {
			vendor = "standard"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %d |\n", vendor, d.Name, list(families), list(mibs), list(kinds), values)
	}
	return b.String()
}

// TestReference holds docs/reference/snmp-library.md to the definitions, and docs/snmp-library.md to the words.
func TestReference(t *testing.T) {
	reference.Section(t, "../../../docs/reference/snmp-library.md", "definitions", page(t), *update)
	text, err := os.ReadFile("../../../docs/snmp-library.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range append(append(words(quantities), words(statuses)...), append(words(conversions), limits...)...) {
		if !strings.Contains(string(text), "`"+w+"`") {
			t.Errorf("the word %s is not explained", w)
		}
	}
	_, example, _ := strings.Cut(string(text), "<!-- definition -->\n```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	if _, err := Parse("example", []byte(example)); err != nil || example == "" {
		t.Errorf("the example is wrong: %v", err)
	}
}

// TestBuiltIn checks the number, file names, detect entries and objects of the built-in definitions.
func TestBuiltIn(t *testing.T) {
	l, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Definitions()) < 50 {
		t.Errorf("only %d definitions", len(l.Definitions()))
	}
	for _, d := range l.Definitions() {
		if d.file != d.Name+".yaml" {
			t.Errorf("%s is in %s", d.Name, d.file)
		}
		if len(d.detects) == 0 {
			t.Errorf("%s is never recognised", d.Name)
		}
		for _, x := range d.tables {
			for _, v := range x.values {
				if strings.Contains(v.object, "?") {
					t.Errorf("%s: %s has a value without an object", d.Name, x.object)
				}
			}
		}
	}
}
