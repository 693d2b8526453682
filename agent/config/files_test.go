package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// configFiles writes agent.yaml, and the further files in conf.d.
func configFiles(t *testing.T, main string, further map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "agent.yaml")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, confDir), 0o700), os.WriteFile(file, []byte(main), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, text := range further {
		if err := os.WriteFile(filepath.Join(dir, confDir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// TestFilesOfConfDAreJoined: lists at the top are appended in the order of the files' names, mappings
// are joined, and what is not *.yaml is left out.
func TestFilesOfConfDAreJoined(t *testing.T) {
	file := configFiles(t, "probes: [{name: a, type: canary}]\nglobal: {external_labels: {site: x}}\nwal:\n", map[string]string{
		"20.yaml": "probes: [{name: c, type: canary}]\nremote_write: [{name: two, url: 'http://127.0.0.1:2/', bearer_token_file: token}]\n",
		"10.yaml": "probes: [{name: b, type: canary}]\nremote_write: [{name: one, url: 'http://127.0.0.1:1/'}]\nglobal: {scrape_interval: 20s, external_labels: {rack: y}}\nwal: {max_bytes: 3MiB}\n",
		"15.yaml": "# nothing yet\n",
		"16.yaml": "probes:\n#  - {type: host}\n",
		".x.yaml": "nonsense", "x.yaml~": "nonsense", "README": "nonsense", "x.yml": "nonsense",
	})
	cfg, warns, err := Load(file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range cfg.Probes {
		names = append(names, p.Name)
	}
	for _, w := range cfg.RemoteWrite {
		names = append(names, w.TargetName())
	}
	if got, want := strings.Join(names, " "), "a b c hwsagent one two"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := fmt.Sprint(cfg.Global.ExternalLabels, cfg.Global.ScrapeInterval, cfg.WAL.MaxBytes); got != "map[rack:y site:x] 20s 3MiB" {
		t.Errorf("got %s", got)
	}
	if got := cfg.RemoteWrite[1].CredentialFiles(); len(got) != 1 || got[0] != filepath.Join(filepath.Dir(file), "token") {
		t.Errorf("a path in conf.d is %s", got)
	}
	if len(warns) != 1 || !strings.Contains(warns[0].String(), "conf.d/x.yml: the file is not read") {
		t.Errorf("warnings %v", warns)
	}
	if len(cfg.Further) != 4 {
		t.Errorf("files %v", cfg.Further)
	}
}

// TestMistakesNameTheirFile: a mistake is shown at the line of the file that has it, with the line's
// text and the entry's place in that file.
func TestMistakesNameTheirFile(t *testing.T) {
	const main = "# a\nglobal: {scrape_interval: 15s}\nprobes:\n  - {name: a, type: canary}\nreceivers: {import: {listen: '127.0.0.1:1'}}\n"
	for name, c := range map[string]struct {
		main    string
		further map[string]string
		want    []string
	}{
		"an unknown key": {main, map[string]string{"x.yaml": "\n\nprobes:\n  - {name: b, type: canary, seris: 1}\n"},
			[]string{`conf.d/x.yaml:4:29: probes[0] "b": unknown key "seris"`, `did you mean "series"?`}},
		"a scalar twice": {main, map[string]string{"x.yaml": "global:\n  scrape_interval: 20s\n"},
			[]string{`conf.d/x.yaml:2:3: global: key "scrape_interval" is given twice; the first is at `, "agent.yaml:2\n", "    2 |   scrape_interval: 20s", "1 mistake"}},
		"in two further files": {main, map[string]string{"x.yaml": "wal: {retain: 1h}\n", "y.yaml": "\nwal: {retain: 2h}\n"},
			[]string{`conf.d/y.yaml:2:7: wal: key "retain" is given twice; the first is at `, "conf.d/x.yaml:1\n"}},
		"a receiver twice": {main, map[string]string{"x.yaml": "receivers: {import: {listen: '127.0.0.1:2'}}\n"},
			[]string{`conf.d/x.yaml:1:22: receivers.import: key "listen" is given twice; the first is at `, "agent.yaml:5"}},
		"an inner list twice": {"global: {scrape_protocols: [PrometheusProto]}\n", map[string]string{"x.yaml": "global: {scrape_protocols: [PrometheusText0.0.4]}\n"},
			[]string{`key "scrape_protocols" is given twice`, "agent.yaml:1"}},
		"a list and a mapping": {main, map[string]string{"x.yaml": "probes: {name: b}\n"},
			[]string{`conf.d/x.yaml:1:1: key "probes" is given twice; the first is at `, "agent.yaml:3"}},
		"a name twice": {main, map[string]string{"x.yaml": "probes: [{name: z, type: canary}, {name: a, type: canary}]\n"},
			[]string{`conf.d/x.yaml:1:42: probes[1] "a".name: the name "a" is already used by probes[0] (`, "agent.yaml:4)"}},
		"a target's name twice": {"remote_write: [{name: t, url: 'http://h/'}]\n", map[string]string{"x.yaml": "\nremote_write: [{name: t, url: 'http://i/'}]\n"},
			[]string{`conf.d/x.yaml:2:23: remote_write[0] "t".name: the name "t" is already used by remote_write[0] (`, "agent.yaml:1)"}},
		"a job twice": {"scrape_configs: [{job_name: j}]\n", map[string]string{"x.yaml": "scrape_configs: [{job_name: j}]\n"},
			[]string{`conf.d/x.yaml:1:29: scrape_configs[0].job_name: the name "j" is already used by scrape_configs[0] (`, "agent.yaml:1)"}},
		"a scrape job's mistake": {"scrape_configs: [{job_name: i}]\n", map[string]string{"x.yaml": "\nscrape_configs:\n- job_name: j\n  scrape_interval: 12x\n"},
			[]string{"conf.d/x.yaml:4:20: scrape_configs[0]", "4 |   scrape_interval: 12x"}},
		"a key twice in one file": {main, map[string]string{"x.yaml": "\nwal: {retain: 1h,\n  retain: 2h}\n"},
			[]string{`conf.d/x.yaml:3:3: wal: key "retain" appears twice; the first is on line 2`}},
		"mistakes of syntax in two": {"probes: [\n", map[string]string{"x.yaml": "probes: ]\n", "y.yaml": "wal: {}\n"},
			[]string{"agent.yaml:2", "conf.d/x.yaml:1", "2 mistakes"}},
		"a mistake of syntax does not hide others": {"probes: [\n", map[string]string{"x.yaml": "probes: [{type: hots}]\n", "y.yaml": "wal: {on_full: panic}\nscrape_configs: [{job_name: a, foo: 1}]\n"},
			[]string{"agent.yaml:2", "conf.d/x.yaml:1:17: probes[0].type", "conf.d/y.yaml:1:16: wal.on_full", "conf.d/y.yaml:2:32: scrape_configs[0]", "4 mistakes"}},
		"a mistake in global does not hide those of jobs": {"global: {scrape_interval: 15}\n", map[string]string{"x.yaml": "scrape_configs:\n- {job_name: a, scrape_timeout: 20s}\n- {job_name: b, sample_limit: x}\n"},
			[]string{"agent.yaml:1:27: global.scrape_interval", "conf.d/x.yaml:3:31: scrape_configs[1].sample_limit", "2 mistakes"}},
		"a merge key": {main, map[string]string{"x.yaml": "global: {<<: {scrape_interval: 1s}}\n"},
			[]string{`conf.d/x.yaml:1:10: global: key "<<" is given twice`}},
		"before a merge key": {"global: {<<: {scrape_interval: 1s}}\n", map[string]string{"x.yaml": "global: {scrape_interval: 2s}\n"},
			[]string{`conf.d/x.yaml:1:10: global: key "scrape_interval" is given twice; the first is at `, "agent.yaml:1"}},
		"two mistakes in two files": {"wal: {max_bytes: 1}\n", map[string]string{"x.yaml": "web: {listen: nowhere}\n"},
			[]string{"agent.yaml:1:18: wal.max_bytes", "conf.d/x.yaml:1:15: web.listen", "2 mistakes"}},
		"too much together": {"# " + strings.Repeat("x", maxBytes-10) + "\n", map[string]string{"x.yaml": "# " + strings.Repeat("x", 20) + "\n"},
			[]string{"conf.d/x.yaml: with this file the configuration exceeds the limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Load(configFiles(t, c.main, c.further), os.LookupEnv)
			if _, ok := errors.AsType[*Errors](err); !ok {
				t.Fatalf("the error is %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in:\n%s", want, err)
				}
			}
		})
	}
}

// TestSecretsOfConfDAreHidden: a line with a mistake shows no secret of its file, also where the key
// is left out for being given twice.
func TestSecretsOfConfDAreHidden(t *testing.T) {
	const secret = "s3cr3t-of-a-file"
	for name, text := range map[string]string{
		"an entry":                  "remote_write: [{name: x, url: 'http://h/', bearer_token: " + secret + ", nme: 1}]\n",
		"a key that is there twice": "remote_write: {url: 'http://h/', bearer_token: " + secret + "}\n",
		"a syntax error":            "remote_write: [{bearer_token: " + secret + ", ]\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Load(configFiles(t, "remote_write: [{name: a, url: 'http://h/'}]\n", map[string]string{"x.yaml": text}), os.LookupEnv)
			if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "conf.d/x.yaml:1") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSplitConfigurationIsTheSame: a configuration whose keys stand in a file each, and whose lists
// are cut in two, is the same as the whole.
func TestSplitConfigurationIsTheSame(t *testing.T) {
	for _, name := range []string{"../../deploy/examples/full.yaml", "testdata/config/everything.good.yaml", "testdata/config/minimal.good.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var root yaml.Node
		if err := yaml.Load(text, &root); err != nil {
			t.Fatal(err)
		}
		further := map[string]string{}
		write := func(key, value *yaml.Node) {
			part, err := yaml.Dump(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, value}})
			if err != nil {
				t.Fatal(err)
			}
			further[fmt.Sprintf("%03d.yaml", len(further))] = string(part)
		}
		top := root.Content[0].Content
		for i := 0; i+1 < len(top); i += 2 {
			key, value := top[i], top[i+1]
			if value.Kind == yaml.SequenceNode && len(value.Content) > 1 {
				first, rest := *value, *value
				first.Content, rest.Content = value.Content[:1], value.Content[1:]
				write(key, &first)
				value = &rest
			}
			write(key, value)
		}
		if strings.Contains(string(text), "*") && strings.Contains(string(text), "&") {
			continue // an anchor holds in its own file only
		}
		env := func(string) (string, bool) { return "value", true }
		whole, split := configFiles(t, string(text), nil), configFiles(t, "", further)
		want, _, err := loadFile(whole, env, placeholder)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := loadFile(split, env, placeholder)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		shown := func(c *Config) string {
			b, err := c.Redacted()
			if err != nil {
				t.Fatal(err)
			}
			return strings.ReplaceAll(string(b), c.Dir, "DIR")
		}
		if shown(got) != shown(want) {
			t.Errorf("%s: split it is\n%s\nwhole it is\n%s", name, shown(got), shown(want))
		}
	}
}

// TestHostFacts: hosts that share a configuration differ by facts about them, which are no secrets.
func TestHostFacts(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := LoadBytes("agent.yaml", []byte("global: {external_labels: {host: \"${host:name}\", role: \"${ROLE:-none}\"}}\nremote_write: [{url: \"https://h/${host:name}/push\"}]\n"),
		func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Global.ExternalLabels; got["host"] != hostname || got["role"] != "none" {
		t.Errorf("got %v", got)
	}
	if shown, err := cfg.Redacted(); err != nil || !strings.Contains(string(shown), "https://h/"+hostname+"/push") {
		t.Errorf("%v; shown as\n%s", err, shown)
	}
	_, _, err = LoadBytes("agent.yaml", []byte("global: {external_labels: {host: \"${host:nme}\"}}\n"), os.LookupEnv)
	if err == nil || !strings.Contains(err.Error(), `agent.yaml:1:34: global.external_labels.host: unknown host fact "nme": use ${host:name} or ${host:machine_id}`) {
		t.Errorf("got %v", err)
	}
	file := filepath.Join(t.TempDir(), "machine-id")
	for text, want := range map[string]string{
		"0123456789abcdef0123456789abcdef\n": "0123456789abcdef0123456789abcdef",
		"uninitialized\n":                    "", "": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := hostFact("machine_id", file); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
	if _, err := hostFact("machine_id", file+"x"); err == nil {
		t.Error("a host without the file has an ID")
	}
}

// TestFilesOfProbes: other users may read the certificates that a probe names, but not its keys and passwords.
func TestFilesOfProbes(t *testing.T) {
	cfg, _, err := LoadBytes("/etc/hwsagent/agent.yaml", []byte("probes:\n- {name: ups, type: nut, starttls: true, username: u, password_file: pw, tls_config: {ca_file: ca.pem, cert_file: c.pem, key_file: c.key}}\n"), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range cfg.NamedFiles() {
		got[f.Path] = f.Secret
	}
	want := map[string]bool{"/etc/hwsagent/pw": true, "/etc/hwsagent/ca.pem": false, "/etc/hwsagent/c.pem": false, "/etc/hwsagent/c.key": true}
	if !maps.Equal(got, want) {
		t.Errorf("the files and whether they are secret: %v, want %v", got, want)
	}
}
