package config

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hwsagent/probes/self"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the expected texts anew")

const secretCanary = "hunter2"

// testEnv returns the environment that the files in testdata see.
func testEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"HOST": "web-3", "MAX": "5000", "ZONE": "", "TOKEN": secretCanary,
		"LONG_TOKEN": secretCanary + "-and-quite-long", "STRUCTURE": "a: [b, {c: d}]\n- e",
		"NULL": "null", "TILDE": "~", "ZEROS": "007", "YES": "yes",
	}[name]
	return v, ok
}

func TestBadConfigs(t *testing.T) {
	files, err := filepath.Glob("testdata/config/*.bad.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			cfg, _, err := LoadBytes("agent.yaml", text, testEnv)
			if err == nil || cfg != nil {
				t.Fatal("loaded")
			}
			var all *Errors
			if !errors.As(err, &all) {
				t.Fatalf("%T is not an *Errors: %v", err, err)
			}
			if strings.Contains(err.Error(), secretCanary) {
				t.Errorf("a secret shows:\n%v", err)
			}
			golden(t, strings.TrimSuffix(f, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

// golden compares got with the content of a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestGoodConfigs(t *testing.T) {
	files, err := filepath.Glob("testdata/config/*.good.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			cfg, _, err := Load(f, testEnv)
			if err != nil {
				t.Fatal(err)
			}
			if !filepath.IsAbs(cfg.File) {
				t.Errorf("File %q is not absolute", cfg.File)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	cfg, warns, err := LoadBytes("/etc/hwsagent/agent.yaml", nil, testEnv)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(cfg.Global.ScrapeInterval, cfg.Global.ScrapeTimeout, cfg.WAL.Sync, int64(cfg.WAL.MaxBytes), int64(cfg.WAL.MinFreeBytes),
		cfg.WAL.OnFull, cfg.WAL.Retain, cfg.WAL.OrphanTTL, cfg.Web.Listen)
	want := fmt.Sprintln("15s", "10s", "1s", 2<<30, 256<<20, "drop_oldest", "0s", "1d", "127.0.0.1:9464")
	if got != want {
		t.Errorf("defaults\n got %s\nwant %s", got, want)
	}
	if len(cfg.Probes) != 1 || cfg.Probes[0].Type != "self" || cfg.Probes[0].Name != selfName || !cfg.Probes[0].Enabled {
		t.Errorf("probes %+v, want the self probe only", cfg.Probes)
	}
	if len(warns) != 2 {
		t.Errorf("warnings %v, want one about probes and one about targets", warns)
	}
}

func TestEverything(t *testing.T) {
	cfg, warns, err := Load("testdata/config/everything.good.yaml", testEnv)
	if err != nil {
		t.Fatal(err)
	}
	if len(warns) != 1 || !strings.Contains(warns[0].String(), "remote_write[1].url: has a user") {
		t.Errorf("warnings: %v, want one about the password in the URL", warns)
	}
	if diff := cmp.Diff(map[string]string{"site": "fra1", "host": "web-3", "zone": "a"}, cfg.Global.ExternalLabels); diff != "" {
		t.Error(diff)
	}
	var names []string
	for _, p := range cfg.Probes {
		names = append(names, fmt.Sprint(p.Name, " ", p.Type, " ", p.Interval, " ", p.Timeout, " ", p.Enabled))
	}
	if diff := cmp.Diff([]string{"host host 30s 5s true", "core-switch snmp 1m 20s true", "hwsagent self 1m 5s true", "spare host 30s 5s false"}, names); diff != "" {
		t.Error(diff)
	}
	sw := cfg.Probes[1]
	if sw.MaxSamples != 5000 || sw.MetricRelabelConfigs[0].Replacement != "port-${1}" || sw.Labels["rack"] != "b4" {
		t.Errorf("switch %+v", sw)
	}
	if cfg.WAL.Sync != (SyncMode{Every: 100 * time.Millisecond}) {
		t.Errorf("sync %v", cfg.WAL.Sync)
	}
	if want := filepath.Join(cfg.Dir, "web.yml"); cfg.Web.ConfigFile != want || !filepath.IsAbs(want) {
		t.Errorf("config_file %q, want %q", cfg.Web.ConfigFile, want)
	}
}

// The content of a variable is a value, whatever it looks like.
func TestExpandedIsNeverStructure(t *testing.T) {
	plain, _, err := LoadBytes("agent.yaml", []byte("global:\n  external_labels:\n    a: ${ZEROS}\n"), testEnv)
	if err != nil || plain.Global.ExternalLabels["a"] != "007" {
		t.Errorf("without quotes: %v, %v", plain, err)
	}
	for _, name := range []string{"STRUCTURE", "NULL", "TILDE", "ZEROS", "YES", "MAX"} {
		text := "global: {external_labels: {a: \"${" + name + "}\"}}\n"
		cfg, _, err := LoadBytes("agent.yaml", []byte(text), testEnv)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, _ := testEnv(name)
		if got := cfg.Global.ExternalLabels["a"]; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestFileExpansion(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "site"), []byte("fra1\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "global: {external_labels: {a: 'x-${file:site}-${file:" + filepath.Join(dir, "site") + "}'}}\n"
	cfg, _, err := LoadBytes(filepath.Join(dir, "agent.yaml"), []byte(text), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Global.ExternalLabels["a"]; got != "x-fra1-fra1" {
		t.Errorf("got %q", got)
	}
	for name, size := range map[string]int{"big": maxExpandedFile + 1, "gone": -1} {
		if size >= 0 {
			if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := LoadBytes(filepath.Join(dir, "agent.yaml"), []byte("global: {external_labels: {a: '${file:"+name+"}'}}"), testEnv)
		var all *Errors
		if !errors.As(err, &all) || all.Errors[0].Line != 1 {
			t.Errorf("%s: %v, want an error on line 1", name, err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	f := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(f, []byte(strings.Repeat("#", maxBytes+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(f, testEnv); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("got %v, want an error about the limit", err)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"bearer_token", "bearer_token_file", "url", "remote_timeout"}
	for word, want := range map[string]string{
		"bearer_tokn_file": "bearer_token_file", "bearerTokenFile": "bearer_token_file", "URL": "url",
		"bearer-token": "bearer_token", "remote_timout": "remote_timeout", "completely": "", "x": "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	const cut = "\n--8<--\n" // where the text of the next file begins
	f.Add([]byte("global: {external_labels: {a: \"${TOKEN}\"}}\nprobes: [{type: host}]" + cut + "global: {external_labels: {a: b, c: \"${TOKEN}\"}}\nprobes: [{type: x}]" + cut + "remote_write: [{bearer_token: x}]"))
	f.Add([]byte("remote_write: {bearer_token: \"${TOKEN}\"}" + cut + "remote_write: [{url: 'http://h/'}]\nwal: &a\nweb: *a"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var parts []fileText
		for i, part := range bytes.Split(text, []byte(cut)) {
			parts = append(parts, fileText{fmt.Sprintf("/nowhere/%d.yaml", i), part})
		}
		cfg, warns, err := loadTexts(parts, "/nowhere", testEnv, readSmallFile)
		if (cfg == nil) == (err == nil) {
			t.Fatalf("configuration %v and error %v", cfg, err)
		}
		for _, w := range warns {
			_ = w.String()
		}
		if err == nil {
			return
		}
		var all *Errors
		if !errors.As(err, &all) || len(all.Errors) == 0 || all.Error() == "" {
			t.Fatalf("error %T %v says nothing", err, err)
		}
		// Expanded values never show, whatever the file says.
		if strings.Contains(err.Error(), secretCanary) && !strings.Contains(string(text), secretCanary) {
			t.Fatalf("a secret shows:\n%v", err)
		}
	})
}

// TestSelfLevel: the accepted values of level.
func TestSelfLevel(t *testing.T) {
	for level, good := range map[self.Level]bool{"": true, self.Brief: true, self.Full: true, "all": false, "Full": false} {
		if err := (&self.Config{Level: level}).Validate(); (err == nil) != good {
			t.Errorf("level %q: %v", level, err)
		}
	}
}
