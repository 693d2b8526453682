package scrape

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"hwsagent/internal/pages"
	"hwsagent/internal/panics"
)

// told are groups of targets as source[targets], in their order.
func told(all []*targetgroup.Group) string {
	var texts []string
	for _, g := range all {
		var targets []string
		for _, one := range g.Targets {
			targets = append(targets, string(one[model.AddressLabel]))
		}
		texts = append(texts, filepath.Base(g.Source)+fmt.Sprint(targets))
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

func quietGuard(t *testing.T) *panics.Guard {
	t.Helper()
	return panics.New(t.Name(), slog.New(slog.DiscardHandler))
}

// TestListFiles: files are read again when they change; a file that is gone takes its targets with
// it, and one that cannot be read keeps those that it had.
func TestListFiles(t *testing.T) {
	dir := t.TempDir()
	failed := newSDMetrics().fileFailed
	r := &reader{patterns: []string{filepath.Join(dir, "*.json"), filepath.Join(dir, "b.yml")}, interval: time.Hour,
		failed: failed, logger: slog.New(slog.DiscardHandler), guard: quietGuard(t), files: map[string]*listFile{}}
	now := time.Now()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		if err := os.Chtimes(filepath.Join(dir, name), now, now); err != nil {
			t.Fatal(err)
		}
	}
	looks := func(what, want string, failures float64) {
		t.Helper()
		before := testutil.ToFloat64(failed)
		if got := told(r.look(now)); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		if got := testutil.ToFloat64(failed) - before; got != failures {
			t.Errorf("%s: %v failures, want %v", what, got, failures)
		}
	}
	looks("nothing", "", 0)
	write("a.json", `[{"targets": ["a:1", "a:2"], "labels": {"x": "y"}}, {"targets": ["a:3"]}]`)
	write("b.yml", "- targets: [b:1]\n")
	looks("new files", "a.json:0[a:1 a:2] a.json:1[a:3] b.yml:0[b:1]", 0)
	looks("the same", "", 0)
	write("a.json", `[{"targets": ["a:4"]}]`)
	looks("one changed", "a.json:0[a:4] a.json:1[]", 0)
	for name, text := range map[string]string{
		"no JSON": "{", "null": "[null]", "an unknown key": `[{"target": ["a:1"]}]`, "two lists": "[][]",
		"too large": `[{"targets": ["` + strings.Repeat("a", maxListBytes) + `"]}]`,
		"too many":  `[{"targets": [` + strings.Repeat(`"a",`, maxTargets) + `"a"]}]`,
	} {
		write("a.json", text)
		looks(name, "", 1)
	}
	write("a.json", `[{"targets": ["a:5"]}]`)
	looks("good again", "a.json:0[a:5]", 0)
	now = now.Add(time.Hour)
	looks("an hour later", "a.json:0[a:5] b.yml:0[b:1]", 0)
	if err := os.Remove(filepath.Join(dir, "a.json")); err != nil {
		t.Fatal(err)
	}
	looks("gone", "a.json:0[]", 0)
	if err := spoilFile(filepath.Join(dir, "c.json")); err != nil {
		t.Fatal(err)
	}
	looks("a file that is none, such as a pipe, which would wait for a writer", "", 1)
}

// TestListOverHTTP: a list is taken from a good answer only; the groups that the next one lacks
// come empty.
func TestListOverHTTP(t *testing.T) {
	var answer func(w http.ResponseWriter)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "application/json" || r.Header.Get("X-Prometheus-Refresh-Interval-Seconds") != "60" {
			t.Errorf("asked with %v", r.Header)
		}
		answer(w)
	}))
	defer s.Close()
	j := jobs(t, fmt.Sprintf("{job_name: j, http_sd_configs: [{url: '%s/sd?t=CANARY'}]}", s.URL))
	failed := newSDMetrics().httpFailed
	f := &finder{config: j.settings()[0].HTTP[0], failed: failed, guard: quietGuard(t), pages: new(pages.Buffers)}
	good := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			fmt.Fprint(w, text)
		}
	}
	for _, tc := range []struct {
		name   string
		answer func(http.ResponseWriter)
		want   string
		fail   string
	}{
		{"two groups", good(`[{"targets": ["a:1"]}, {"targets": ["b:1"], "labels": {"x": "y"}}]`), "0[a:1] 1[b:1]", ""},
		{"no JSON", good(`[{`), "", "unexpected"},
		{"a status", func(w http.ResponseWriter) { w.WriteHeader(503) }, "", "503"},
		{"another type", func(w http.ResponseWriter) { fmt.Fprint(w, "[]") }, "", "content type"},
		{"too large", good(strings.Repeat(" ", maxListBytes+1)), "", "more than"},
		{"one group", good(`[{"targets": ["a:2"]}]`), "0[a:2] 1[]", ""},
		{"none", good(`[]`), "0[]", ""},
		{"still none", good(`[]`), "", ""},
	} {
		answer = tc.answer
		found, err := f.refresh(t.Context())
		if tc.fail != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fail) || strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), s.URL) {
				t.Errorf("%s: %v, want %q", tc.name, err, tc.fail)
			}
			continue
		}
		got := strings.ReplaceAll(told(found), "sd?<secret>:", "")
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v, want %q", tc.name, got, err, tc.want)
		}
		for _, g := range found {
			if len(g.Targets) > 0 && string(g.Labels["__meta_url"]) != s.URL+"/sd?t=CANARY" {
				t.Errorf("%s: labels %v", tc.name, g.Labels)
			}
		}
	}
	if n := testutil.ToFloat64(failed); n != 4 {
		t.Errorf("%v failures are counted", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.refresh(ctx); err == nil {
		t.Error("a refresh goes on after its end")
	}
}

// TestReadJSONGroupByGroup: a list is taken as JSON has it, and nothing beside it.
func TestReadJSONGroupByGroup(t *testing.T) {
	for text, want := range map[string]int{
		`[]`: 0, ` null `: 0, `[{}]`: 1, `[{"targets":["a:1"]},{"labels":{"x":"y"}}] `: 2,
		``: -1, `{}`: -1, `"a"`: -1, `3`: -1, `[{},]`: -1, `[{} {}]`: -1, `[{}`: -1, `[{}}`: -1, `[null]`: -1, `[[]]`: -1, `[{"targets":1}]`: -1, `[] 1`: -1, `[][]`: -1,
	} {
		list, err := readJSON([]byte(text))
		if want < 0 && err == nil || want >= 0 && (err != nil || len(list) != want) {
			t.Errorf("%q: %d groups, error %v, want %d", text, len(list), err, want)
		}
	}
}

// TestReadJSONKeepsNoCopyOfTheList: the text between groups is not kept in memory a second time.
func TestReadJSONKeepsNoCopyOfTheList(t *testing.T) {
	const groups = 500
	text := []byte("[" + strings.Repeat(`{"targets":["a:1"]},`+strings.Repeat(" ", 20<<10), groups) + `{}]`)
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if list, err := readJSON(text); err != nil || len(list) != groups+1 {
				b.Fatal(len(list), err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > int64(len(text)/8) {
		t.Errorf("%d bytes are allocated for a list of %d", allocated, len(text))
	}
}

// TestGroupsWithoutLabelsShareThem: they take the memory of one, and the labels of others stay their own.
func TestGroupsWithoutLabelsShareThem(t *testing.T) {
	list := []listed{{Targets: []string{"a:1"}}, {Targets: []string{"b:1"}, Labels: model.LabelSet{"x": "y"}}, {Targets: []string{"c:1"}}}
	all := groups(list, "s", "__meta_url", "u", 0)
	for i, want := range []string{`{__meta_url="u"}`, `{__meta_url="u", x="y"}`, `{__meta_url="u"}`} {
		if got := all[i].Labels.String(); got != want {
			t.Errorf("group %d has the labels %s, want %s", i, got, want)
		}
	}
	if len(list[1].Labels) != 1 {
		t.Errorf("the list itself has changed: %s", list[1].Labels)
	}
	many := make([]listed, 5000)
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			_ = groups(many, "s", "__meta_url", "u", 0)
		}
	}).AllocedBytesPerOp()
	if each := allocated / int64(len(many)); each > 300 {
		t.Errorf("a group without targets and labels takes %d bytes", each)
	}
}

// TestTooLargeFileTakesNoRoom: a file with more than a list may have is not read.
func TestTooLargeFileTakesNoRoom(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, maxListBytes+1); err != nil {
		t.Fatal(err)
	}
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if _, err := readList(name); err == nil || !strings.Contains(err.Error(), "more than") {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 64<<10 {
		t.Errorf("%d bytes are allocated for a file that is too large", allocated)
	}
}
