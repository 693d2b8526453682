package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// docEntry is one remote_write entry of docs/compatibility.md. The comment before it says
// whether the end-to-end tests use it (<!-- run: NAME -->) or where it comes from
// (<!-- untested: SOURCE -->).
type docEntry struct {
	run, untested string
	text          string
}

func docEntries(t *testing.T) []docEntry {
	t.Helper()
	text, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	var entries []docEntry
	before := ""
	for i, part := range strings.Split(string(text), "```") {
		if i%2 == 0 {
			before = part
			continue
		}
		block, ok := strings.CutPrefix(part, "yaml\n")
		if !ok {
			continue
		}
		m := regexp.MustCompile(`<!-- (run|untested): (.+) -->\n$`).FindStringSubmatch(before)
		if m == nil {
			t.Errorf("docs/compatibility.md: no comment says whether this entry is run or untested:\n%s", block)
			continue
		}
		e := docEntry{text: block}
		if m[1] == "run" {
			e.run = m[2]
		} else {
			e.untested = m[2]
		}
		entries = append(entries, e)
	}
	return entries
}

// recommendedEntry returns the entry of docs/compatibility.md that is marked by a name.
func recommendedEntry(t *testing.T, name string) map[string]any {
	t.Helper()
	for _, e := range docEntries(t) {
		if e.run != name {
			continue
		}
		var file struct {
			RemoteWrite []map[string]any `yaml:"remote_write"`
		}
		if err := yaml.Unmarshal([]byte(e.text), &file); err != nil || len(file.RemoteWrite) != 1 {
			t.Fatalf("docs/compatibility.md: entry %q: %v", name, err)
		}
		return file.RemoteWrite[0]
	}
	t.Fatalf("docs/compatibility.md has no entry %q", name)
	return nil
}

// quickEntry returns an entry for a test's receiver, with the pace of a test.
func quickEntry(t *testing.T, entry map[string]any, url string) string {
	t.Helper()
	entry["name"], entry["url"] = "real", url
	queue, _ := entry["queue_config"].(map[string]any)
	if queue == nil {
		queue = make(map[string]any)
	}
	queue["batch_send_deadline"], queue["max_backoff"] = "200ms", "1s"
	entry["queue_config"] = queue
	b, err := yaml.Marshal([]any{entry})
	if err != nil {
		t.Fatal(err)
	}
	return "  " + strings.TrimSuffix(strings.ReplaceAll(string(b), "\n", "\n  "), "  ")
}

// TestReceiversDoc: each entry of docs/compatibility.md is one that the agent takes; each that is
// said to be run is run, and the others name where they come from.
func TestReceiversDoc(t *testing.T) {
	t.Parallel()
	run := make(map[string]bool) // by mark: whether the page has it
	for _, b := range append(realReceivers(), liveFirstReceivers()...) {
		run[b.entry] = false
	}
	for i, e := range docEntries(t) {
		if has, ok := run[e.run]; e.run != "" && (!ok || has) {
			t.Errorf("docs/compatibility.md: the entry %q is not run, or stands there twice", e.run)
		}
		if e.run != "" {
			run[e.run] = true
		}
		file := writeFile(t, filepath.Join(t.TempDir(), "agent.yaml"), e.text)
		stdout, stderr, code := hwsagent(t, "check", "--syntax-only", "--config.file", file)
		if code != exitOK || strings.Contains(stdout+stderr, "no effect") {
			t.Errorf("docs/compatibility.md: entry %d: exit code %d\n%s%s\n%s", i, code, stdout, stderr, e.text)
		}
	}
	for mark, has := range run {
		if !has {
			t.Errorf("docs/compatibility.md lacks the entry %q", mark)
		}
	}
}
