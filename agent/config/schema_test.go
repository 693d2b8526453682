package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// validator judges values by a JSON schema: the keywords that Schema writes, by their meaning in draft 2020-12.
// A keyword that it does not know is a failure of the test.
type validator struct {
	t    *testing.T
	defs map[string]any
}

func newValidator(t *testing.T) (*validator, map[string]any) {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	return &validator{t, schema["$defs"].(map[string]any)}, schema
}

// wrong returns what is wrong with v at path, "" if nothing is.
func (j *validator) wrong(schema, v any, path string) string {
	if allowed, ok := schema.(bool); ok {
		if !allowed {
			return path + ": not allowed"
		}
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(schema.(map[string]any))) {
		if w := j.keyword(schema.(map[string]any), key, v, path); w != "" {
			return w
		}
	}
	return ""
}

func (j *validator) keyword(schema map[string]any, key string, v any, path string) string {
	arg := schema[key]
	object, _ := v.(map[string]any)
	switch key {
	case "$schema", "title", "$defs", "then": // "then" is judged with "if"
	case "$ref":
		def, ok := j.defs[strings.TrimPrefix(arg.(string), "#/$defs/")]
		if !ok {
			j.t.Fatalf("no definition of %s", arg)
		}
		return j.wrong(def, v, path)
	case "type":
		types, ok := arg.([]any)
		if !ok {
			types = []any{arg}
		}
		if kind := jsonKind(v); !slices.Contains(types, any(kind)) && (kind != "integer" || !slices.Contains(types, any("number"))) {
			return fmt.Sprintf("%s: %s is no %v", path, kind, types)
		}
	case "enum":
		if !slices.Contains(arg.([]any), v) {
			return fmt.Sprintf("%s: %v is none of %v", path, v, arg)
		}
	case "const":
		if arg != v {
			return fmt.Sprintf("%s: %v is not %v", path, v, arg)
		}
	case "pattern":
		if text, ok := v.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(text) {
			return path + ": does not match"
		}
	case "minimum":
		if n, ok := v.(int); ok && float64(n) < arg.(float64) {
			return path + ": too small"
		}
	case "anyOf":
		var all []string
		for _, one := range arg.([]any) {
			w := j.wrong(one, v, path)
			if w == "" {
				return ""
			}
			all = append(all, w)
		}
		return strings.Join(all, "; ")
	case "allOf":
		for _, one := range arg.([]any) {
			if w := j.wrong(one, v, path); w != "" {
				return w
			}
		}
	case "if":
		if j.wrong(arg, v, path) == "" {
			return j.wrong(schema["then"], v, path)
		}
	case "required":
		for _, name := range arg.([]any) {
			if _, ok := object[name.(string)]; !ok && object != nil {
				return fmt.Sprintf("%s: %v is missing", path, name)
			}
		}
	case "properties":
		for name, one := range arg.(map[string]any) {
			if inner, ok := object[name]; ok {
				if w := j.wrong(one, inner, path+"."+name); w != "" {
					return w
				}
			}
		}
	case "additionalProperties":
		known, _ := schema["properties"].(map[string]any)
		for name, inner := range object {
			if _, ok := known[name]; !ok {
				if w := j.wrong(arg, inner, path+"."+name); w != "" {
					return w
				}
			}
		}
	case "items":
		list, _ := v.([]any)
		for i, inner := range list {
			if w := j.wrong(arg, inner, fmt.Sprintf("%s[%d]", path, i)); w != "" {
				return w
			}
		}
	default:
		j.t.Fatalf("the schema has the keyword %q, which this test does not know", key)
	}
	return ""
}

func jsonKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		return "number"
	}
	return "integer"
}

// exampleConfigs returns all configurations that this repository shows as an example or tests as good.
func exampleConfigs(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"../../agent.yaml", "../../deploy/*/agent.yaml", "../../deploy/examples/*.yaml", "testdata/*/*.good.yaml", "testdata/*.yaml", "../convert/testdata/*.want"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no file is called %s: %v", pattern, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			found[name] = string(text)
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	ofProbes, err := filepath.Glob("../../docs/probes/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := len(found)
	whole := regexp.MustCompile("(?ms)^```yaml\n((?:#[^\n]*\n)*(?:global|wal|probes|receivers|pull|web|remote_write|scrape_configs|scrape_config_files):.*?)^```")
	for _, page := range slices.Concat(pages, ofProbes, []string{"../../README.md"}) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range whole.FindAllStringSubmatch(string(text), -1) {
			found[fmt.Sprintf("%s, example %d", page, i+1)] = m[1]
		}
	}
	if n := len(found) - shown; n < 40 {
		t.Errorf("the pages have only %d examples: the search is broken", n)
	}
	return found
}

// TestExamplesFitTheSchema: every example fits the schema, and loads.
func TestExamplesFitTheSchema(t *testing.T) {
	j, schema := newValidator(t)
	for name, text := range exampleConfigs(t) {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if w := j.wrong(schema, v, ""); w != "" {
			t.Errorf("%s does not fit: %s", name, w)
		}
		if strings.HasPrefix(name, "../../") { // not what a conversion wrote
			file := filepath.Join(t.TempDir(), "agent.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := loadFile(file, func(name string) (string, bool) {
				if name == "HWSAGENT_LISTEN" { // its default is an address
					return "", false
				}
				return "value", true
			}, placeholder)
			if err != nil {
				t.Errorf("%s does not load: %v", name, err)
			}
		}
	}
}

// TestSchemaKnowsTheKeys: a key that is misspelt does not fit the schema, wherever the program refuses it.
func TestSchemaKnowsTheKeys(t *testing.T) {
	j, schema := newValidator(t)
	text, err := os.ReadFile("testdata/config/everything.good.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tried, refused := 0, 0
	var root yaml.Node
	if err := yaml.Load(text, &root); err != nil {
		t.Fatal(err)
	}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for i, inner := range n.Content {
			walk(inner)
			if n.Kind != yaml.MappingNode || i%2 == 1 || inner.Value == "<<" || inner.Value == "type" {
				continue
			}
			was := inner.Value
			inner.Value += "x"
			changed, err := yaml.Dump(&root)
			inner.Value = was
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := yaml.Unmarshal(changed, &v); err != nil {
				continue // an anchor that something refers to
			}
			_, _, err = loadTexts([]fileText{{"agent.yaml", changed}}, "testdata/config", testEnv, placeholder)
			unknown := err != nil && strings.Contains(err.Error(), "unknown key")
			tried++
			w := j.wrong(schema, v, "")
			if unknown {
				refused++
			}
			if unknown != (w != "") && (unknown || err == nil) {
				t.Errorf("%sx in line %d: the schema says %q, the program %v", was, inner.Line, w, err)
			}
		}
	}
	walk(&root)
	if tried < 60 || refused < 50 {
		t.Errorf("%d keys were tried, and %d were refused: too few", tried, refused)
	}
}

// TestSchemaIsStable: the same program gives the same bytes, and no kind of type is left to any value by mistake.
func TestSchemaIsStable(t *testing.T) {
	one, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if two, err := Schema(); err != nil || !bytes.Equal(one, two) {
			t.Fatalf("the schema differs the second time: %v", err)
		}
	}
	if open := regexp.MustCompile(`(?m)^.*: true,?$`).FindAllString(string(one), -1); len(open) > 1 {
		t.Errorf("these take any value: %q", open)
	}
}
