package convert_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v4"

	"hwsagent/agent/config"
	"hwsagent/agent/convert"
)

var update = flag.Bool("update", false, "write the expected texts anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// format is that of a file in testdata, by its name.
func format(file string) string {
	name := filepath.Base(file)
	switch {
	case strings.HasPrefix(name, "hws"), strings.HasPrefix(name, "metricshub"):
		return "hws"
	case strings.HasPrefix(name, "grafana-agent"):
		return "grafana-agent"
	}
	return strings.TrimSuffix(strings.Split(name, "-")[0], ".yaml")
}

// anything returns an environment in which every variable is set.
func anything(string) (string, bool) { return "value-from-the-environment", true }

// TestGolden: each file becomes what stands beside it; that is a configuration which the agent takes, and
// each note names a line of the file, on which its key is.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := convert.Convert(format(file), filepath.Base(file), text)
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".want"
			if *update {
				if err := os.WriteFile(golden, []byte(got.Config), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got.Config); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if _, warns, err := config.LoadBytes("/etc/hwsagent/agent.yaml", []byte(got.Config), anything); err != nil {
				t.Errorf("the agent does not take it: %v\n%v", err, warns)
			}
			lines := strings.Split(string(text), "\n")
			for _, n := range got.Notes {
				if n.Line < 1 || n.Line > len(lines) || n.Text == "" || n.File != filepath.Base(file) {
					t.Errorf("%+v", n)
				} else if last := regexp.MustCompile(`[A-Za-z0-9_/]+$`).FindString(n.Key); n.Line > 1 && last != "" && !strings.Contains(lines[n.Line-1], last) {
					t.Errorf("%s: line %d is %q", n.Key, n.Line, lines[n.Line-1])
				}
			}
		})
	}
}

// TestFormatByKeys: the keys of a file show its format; where they do not, the error says so.
func TestFormatByKeys(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		want := format(file)
		if want == "vmagent" {
			want = "prometheus"
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := convert.Convert("", file, text); err != nil || !strings.Contains(r.Config, "--from "+want+" ") {
			t.Errorf("%s: %v, want %s\n%.100s", file, err, want, r.Config)
		}
	}
	if _, err := convert.Convert("", "f.yaml", []byte("surprise: 1\n")); err == nil || !strings.Contains(err.Error(), "--from") {
		t.Errorf("%v", err)
	}
}

// TestExecPort: a port that is given stands wherever the command and its environment ask for it.
func TestExecPort(t *testing.T) {
	for port, want := range map[string]string{
		"port: 9290": "[/bin/e, -l, ':9290'] {P: '9290'} http://127.0.0.1:9290/metrics",
		"port: 0":    "[/bin/e, -l, ':{{port}}'] {P: '{{port}}'} http://127.0.0.1:{{port}}/metrics",
	} {
		r, err := convert.Convert("otelcol", "f.yaml", []byte("receivers: {prometheus_exec/e: {exec: '/bin/e -l :{{port}}', env: [{name: P, value: '{{port}}'}], "+port+
			"}}\nservice: {pipelines: {metrics: {receivers: [prometheus_exec/e]}}}\n"))
		var got []string
		for _, key := range []string{"command", "env", "scrape_url"} {
			_, after, _ := strings.Cut(r.Config, "\n  "+key+": ")
			line, _, _ := strings.Cut(after, "\n")
			got = append(got, line)
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", port, err, d)
		}
	}
}

// TestRegexpDots: a name's dots are underscores here, in a pattern as well.
func TestRegexpDots(t *testing.T) {
	r, err := convert.Convert("otelcol", "f.yaml", []byte(`
processors: {metricstransform: {transforms: [{include: '^system\.(.*)$', match_type: regexp, action: update, new_name: 'sys.$${1}'}]}}
exporters: {prometheusremotewrite: {endpoint: 'http://x'}}
service: {pipelines: {metrics: {processors: [metricstransform], exporters: [prometheusremotewrite]}}}
`))
	if err != nil || !strings.Contains(r.Config, "regex: system_(.*), target_label: __name__, replacement: 'sys_${1}'") {
		t.Errorf("%v\n%s", err, r.Config)
	}
}

// Nothing disappears in silence: each key at the top, and each component, is in the result or in a note.
func TestNothingIsDroppedInSilence(t *testing.T) {
	for _, tc := range []struct{ format, text, key string }{
		{"prometheus", "surprise: 1\n", "surprise"},
		{"prometheus", "global: {surprise: 1}\n", "global.surprise"},
		{"prometheus", "scrape_configs: [{job_name: a, surprise: 1, static_configs: [{targets: [x]}]}]\n", "scrape_configs[0].surprise"},
		{"vmagent", "scrape_configs: [{job_name: a, nomad_sd_configs: [{}]}]\n", "scrape_configs[0].nomad_sd_configs"},
		{"otelcol", "surprise: 1\n", "surprise"},
		{"otelcol", "receivers: {otlp: {}}\n", "receivers.otlp"},
		{"otelcol", "receivers: {redis: {}}\nservice: {pipelines: {metrics: {receivers: [redis]}}}\n", "receivers.redis"},
		{"otelcol", "exporters: {kafka: {}}\nservice: {pipelines: {metrics: {exporters: [kafka]}}}\n", "exporters.kafka"},
		{"otelcol", "exporters: {prometheusremotewrite: {endpoint: 'http://x', surprise: 1}}\nservice: {pipelines: {metrics: {exporters: [prometheusremotewrite]}}}\n", "exporters.prometheusremotewrite.surprise"},
		{"otelcol", "processors: {surprise: {}}\nservice: {pipelines: {metrics: {processors: [surprise]}}}\n", "processors.surprise"},
		{"otelcol", "extensions: {surprise: {}}\nservice: {extensions: [surprise]}\n", "extensions.surprise"},
		{"grafana-agent", "surprise: 1\n", "surprise"},
		{"grafana-agent", "metrics: {surprise: 1}\n", "metrics.surprise"},
		{"grafana-agent", "metrics: {global: {surprise: 1}}\n", "metrics.global.surprise"},
		{"grafana-agent", "metrics: {configs: [{name: a, surprise: 1}]}\n", "metrics.configs[0].surprise"},
		{"grafana-agent", "metrics: {configs: [{name: a, scrape_configs: [{job_name: a, surprise: 1, static_configs: [{targets: [x]}]}]}]}\n", "metrics.configs[0].scrape_configs[0].surprise"},
		{"grafana-agent", "integrations: {surprise: {enabled: true}}\n", "integrations.surprise"},
		{"grafana-agent", "server: {surprise: 1}\n", "server.surprise"},
		{"hws", "hosts: [{host: {hostname: a}, ipmi: {username: u, password: p, surprise: 1}}]\n", "hosts[0].ipmi.surprise"},
		{"hws", "hosts: [{host: {hostname: a}, http: {username: u, password: p, surprise: 1}}]\n", "hosts[0].http.surprise"},
		{"hws", "hosts: [{host: {hostname: a}, ipmi: {username: u}}]\n", "hosts[0].ipmi"},
		{"hws", "extraMetrics: {hw.site.surprise: 1}\n", "extraMetrics.hw.site.surprise"},
		{"hws", "surprise: 1\n", "surprise"},
		{"hws", "hosts: [{host: {hostname: a}, surprise: {}}]\n", "hosts[0].surprise"},
		{"hws", "resources: {a: {surprise: 1}}\n", "resources.a.surprise"},
	} {
		r, err := convert.Convert(tc.format, "f.yaml", []byte(tc.text))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(r.Notes, func(n convert.Note) bool { return n.Key == tc.key }) {
			t.Errorf("%s %q: no note of %s in %v", tc.format, tc.text, tc.key, r.Notes)
		}
	}
}

func TestRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML": "a: [", "no keys": "- a\n", "nothing": "", "a bomb": "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n" +
			"c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e]\n",
		"a circle": "a: &a [*a]\n", "large": strings.Repeat("# x\n", 1<<19),
	} {
		if r, err := convert.Convert("prometheus", "f", []byte(text)); err == nil {
			t.Errorf("%s is taken: %.200s", name, r.Config)
		}
	}
	if _, err := convert.Convert("nagios", "f", []byte("a: 1\n")); err == nil {
		t.Error("an unknown format is taken")
	}
}

// FuzzConvert: whatever comes in, what comes out has its notes, each at a line of the file, and
// can be read by the agent's parser without harm.
func FuzzConvert(f *testing.F) {
	formats := convert.Formats()
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(slices.Index(formats, format(file))), string(text))
	}
	files, _ = filepath.Glob("testdata/cases/*/*")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(slices.Index(formats, filepath.Base(filepath.Dir(file)))), string(text))
	}
	f.Fuzz(func(t *testing.T, which byte, text string) {
		r, err := convert.Convert(formats[int(which)%len(formats)], "f.yaml", []byte(text))
		if err != nil {
			return
		}
		if r.Config == "" || r.Notes == nil {
			t.Fatalf("%+v", r)
		}
		for _, n := range r.Notes {
			if n.Text == "" || n.Line < 1 || n.Line > strings.Count(text, "\n")+1+strings.Count(text, "\r") {
				t.Errorf("%+v", n)
			}
		}
		var top yaml.Node
		if err := yaml.Load([]byte(r.Config), &top); err != nil {
			t.Errorf("it is no YAML: %v\n%s", err, r.Config)
		}
		_, _, _ = config.LoadBytes("/etc/hwsagent/agent.yaml", []byte(r.Config), anything) // values may be wrong, as they were
	})
}

// TestFormatByText: Alloy's and Telegraf's files are recognised by their lines, and a YAML file with braces is not taken for one; a wrong
// name of a format is an error before the file is read.
func TestFormatByText(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"// Sends.\nprometheus.remote_write \"default\" {\n  endpoint {\n    url = \"http://r\"\n  }\n}\n", "alloy"},
		{"logging {\n  level = \"warn\"\n}\n", "alloy"},
		{"# Telegraf\n[agent]\n  interval = \"10s\"\n[[inputs.cpu]]\n", "telegraf"},
		{"[[outputs.http]]\r\n  url = \"http://r\"\r\n", "telegraf"},
		{"a: {b: c}\nscrape_configs: []\n", "prometheus"},
		{"{scrape_configs: []}\n", "prometheus"},
	} {
		r, err := convert.Convert("", "f", []byte(tc.text))
		if err != nil || !strings.Contains(r.Config, "--from "+tc.want+" ") {
			t.Errorf("%q: %v\n%.60s", tc.text, err, r.Config)
		}
	}
	if _, err := convert.Convert("nagios", "f", []byte("a: [")); err == nil || !strings.Contains(err.Error(), `unknown format "nagios"`) {
		t.Errorf("the name of the format is judged late: %v", err)
	}
}

// TestRefusesText: a file that is not in its format is an error with the line.
func TestRefusesText(t *testing.T) {
	deep := strings.Repeat("a {\n", 100) + strings.Repeat("}\n", 100)
	for _, tc := range []struct{ format, text, want string }{
		{"alloy", "a {\n", "line 2"}, {"alloy", "a = [1,\n", ""}, {"alloy", "a \"x\n", "line 1"}, {"alloy", "a = 1 b = 2\n", "line 1"}, {"alloy", "\n}\n", "line 2"},
		{"alloy", "a = `x", ""}, {"alloy", "a = \"\\q\"", ""}, {"alloy", "a = {b}", ""}, {"alloy", "a = x.", ""}, {"alloy", "a = (1", ""}, {"alloy", deep, "deep"},
		{"alloy", "a = " + strings.Repeat("[", 200), "deep"}, {"alloy", "a = \xff", "UTF-8"}, {"alloy", "/*", ""},
		{"alloy", "a = \"\"" + strings.Repeat("+\"x\"", 2000), "operators"}, {"alloy", strings.Repeat("a {\n}\n", 3000) + "b" + strings.Repeat(" = 1\nb", 6000), "parts"},
		{"telegraf", strings.Repeat("[[inputs.a]]\n", 20_000), "tables"}, {"telegraf", "[agent]\nx = \n", "f:2"}, {"telegraf", "[a]\nx = 1\nx = 2\n", "f:3"}, {"telegraf", strings.Repeat("# x\n", 1<<19), "bytes"},
	} {
		if _, err := convert.Convert(tc.format, "f", []byte(tc.text)); err == nil && tc.text != "/*" || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %.40q: %v", tc.format, tc.text, err)
		}
	}
}
