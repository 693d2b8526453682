package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/demo/receiver"
)

// addition is a new file of the module, or a line of one.
type addition struct {
	file    string // in the module
	from    string // the new file, in testdata/adding; "": line stands before the text before
	line    string
	before  string
	imports string
}

// additions are the steps of CONTRIBUTING.md for a probe, a receiver and a key of a target.
func additions() []addition {
	return []addition{
		{file: "probes/toy/toy.go", from: "probe.go"},
		{
			file: "probes/catalog/catalog.go", before: `		of("textfile"`, imports: "hwsagent/probes/toy",
			line: `of("toy", func(c toy.Config, _ Env) (probes.Probe, error) { return toy.New(c) }),`,
		},
		{file: "receivers/toy/toy.go", from: "receiver.go"},
		{
			file: "receivers/catalog/catalog.go", before: `		{Name: "import"`, imports: "hwsagent/receivers/toy",
			line: `{Name: "toy", Port: "9467", New: func(g *receivers.Gate) http.Handler { return toy.New(g) }},`,
		},
		{file: "remotewrite/config/config.go", before: "	StartAt   StartAt", line: "Toy string `yaml:\"toy,omitempty\"`"},
	}
}

// buildWith builds the agent from this module and the additions, which change no file of it.
func buildWith(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir, overlay := t.TempDir(), map[string]string{}
	for i, a := range additions() {
		path := filepath.Join(root, filepath.FromSlash(a.file))
		if a.from != "" {
			overlay[path] = filepath.Join(root, "e2e", "testdata", "adding", a.from)
			continue
		}
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		source := string(old)
		if strings.Count(source, a.before) != 1 {
			t.Fatalf("%s does not have %q once", a.file, a.before)
		}
		source = strings.Replace(source, a.before, a.line+"\n"+a.before, 1)
		if a.imports != "" {
			source = strings.Replace(source, "\nimport (\n", fmt.Sprintf("\nimport (\n%q\n", a.imports), 1)
		}
		overlay[path] = writeFile(t, filepath.Join(dir, fmt.Sprintf("%d.go", i)), source)
	}
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "hwsagent")
	cmd := exec.Command("go", "build", "-overlay", writeFile(t, filepath.Join(dir, "overlay.json"), string(replace)), "-o", program, "../cmd/hwsagent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build with the additions: %v\n%s", err, out)
	}
	return program
}

// TestAdding adds a probe, a receiver and a key of a target by the steps of CONTRIBUTING.md alone: their samples arrive,
// the schema has their keys, and the agent without them refuses the same configuration.
func TestAdding(t *testing.T) {
	endToEnd(t)
	program := buildWith(t)
	got := make(chan prompb.TimeSeries, 1000)
	r := receiver.New(receiver.Options{Sink: func(all []prompb.TimeSeries) {
		for _, s := range all {
			select {
			case got <- s:
			default:
			}
		}
	}})
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	listen := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	a := newAgent(t, fmt.Sprintf("probes: [{type: toy, answer: 42, interval: 100ms, timeout: 100ms}]\nreceivers: {toy: {listen: %q}}\nremote_write:\n%s",
		listen, entry("a", r.URL(), "    hwsagent: {toy: anything}\n")))
	if stdout, _, code := hwsagent(t, "check", "--syntax-only", "--config.file", a.config); code == 0 || strings.Count(stdout, "unknown") < 3 {
		t.Errorf("the agent without the additions takes the configuration: exit %d\n%s", code, stdout)
	}
	a.name = program
	t.Cleanup(a.kill)
	a.run()
	resp, err := httpClient(t).Post("http://"+listen+"/", "text/plain", strings.NewReader("7"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the receiver answers %s", resp.Status)
	}
	wanted := map[string]float64{"toy_answer": 42, "toy_received": 7}
	for late := time.After(20 * time.Second); len(wanted) > 0; {
		select {
		case s := <-got:
			for _, l := range s.Labels {
				if v, ok := wanted[l.Value]; ok && l.Name == "__name__" && len(s.Samples) > 0 && s.Samples[0].Value == v {
					delete(wanted, l.Value)
				}
			}
		case <-late:
			t.Fatalf("these have not arrived: %v\n%s", wanted, a.tail(20))
		}
	}
	schema, _, _ := runToEnd(t, time.Minute, program, "config", "schema")
	for _, want := range []string{`"const": "toy"`, `"answer"`, `"toy"`} {
		if !strings.Contains(schema, want) {
			t.Errorf("the schema lacks %s", want)
		}
	}
}
