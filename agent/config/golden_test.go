package config

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestGolden: each released version left a file with its keys. All of them load, and together they have every key of the
// reference: a new key comes into the file of the next version.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/golden-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden file: %v", err)
	}
	given := map[string]bool{}
	for _, file := range files {
		if _, _, err := LoadWithoutFiles(file, os.LookupEnv); err != nil {
			t.Errorf("a later version must accept %s:\n%v", file, err)
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var root map[string]any
		if err := yaml.Unmarshal(text, &root); err != nil {
			t.Fatal(err)
		}
		maps.Copy(given, givenKeys(root))
	}
	wanted := referenceKeys(t)
	if len(wanted) < 250 {
		t.Errorf("the reference has only %d keys: the search is broken", len(wanted))
	}
	for _, key := range wanted {
		if !given[key] {
			t.Errorf("no golden file has the key %s: add it to that of the next version, or before the release to the newest", key)
		}
	}
}

// givenKeys returns the keys of a configuration as referenceKeys does: without the numbers of lists, and those of a probe by its type.
func givenKeys(root map[string]any) map[string]bool {
	found := map[string]bool{}
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				found[path+key] = true
				walk(inner, path+key+".")
			}
		case []any:
			for _, inner := range v {
				walk(inner, path)
			}
		}
	}
	sections := maps.Clone(root)
	delete(sections, "probes")
	walk(sections, "")
	probes, _ := root["probes"].([]any)
	for _, p := range probes {
		entry, _ := p.(map[string]any)
		kind, _ := entry["type"].(string)
		walk(entry, "probes.")
		walk(entry, "probe "+kind+".")
	}
	receivers, _ := root["receivers"].(map[string]any)
	for _, r := range receivers {
		walk(r, "receivers.")
	}
	return found
}

// referenceKeys returns the keys of docs/reference/configuration.md: rows of tables, and the lists of Prometheus' keys.
func referenceKeys(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	section := ""
	name := regexp.MustCompile("`([a-z0-9_]+)`")
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "##") {
			section = strings.TrimSpace(heading) + "."
			all = append(all, strings.TrimSuffix(section, "."))
		}
		if row, ok := strings.CutPrefix(line, "| `"); ok {
			key, _, _ := strings.Cut(row, "`")
			all = append(all, section+strings.ReplaceAll(key, "[]", ""))
		}
		if _, list, ok := strings.Cut(line, ": `"); ok && (strings.HasPrefix(line, "Defaults of scrape jobs") || section == "scrape_configs.") {
			for _, m := range name.FindAllStringSubmatch("`"+list, -1) {
				all = append(all, section+m[1])
			}
		}
	}
	// A heading of a probe's own keys is no key.
	return slices.DeleteFunc(all, func(key string) bool {
		return strings.HasPrefix(key, "probe ") && !strings.Contains(key, ".") || key == "probes"
	})
}
