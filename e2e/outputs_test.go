package e2e

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// outputs are all that comes out of an agent, by where.
type outputs struct {
	t     *testing.T
	a     *agent
	found map[string]string
}

// pages gets every page and answer of the agent's web server.
func (o outputs) pages() {
	o.t.Helper()
	for _, path := range []string{
		"/", "/targets", "/metrics", "/api/v1/status", "/api/v1/config", "/api/v1/targets", "/api/v1/targets?state=any", "/-/healthy", "/-/ready",
		"/debug/pprof/", "/debug/pprof/goroutine?debug=2", "/debug/pprof/cmdline",
	} {
		code, body, err := o.a.ask(http.MethodGet, path)
		if err != nil || code != http.StatusOK {
			o.t.Errorf("%s: %d %v", path, code, err)
		}
		o.found["GET "+path] = body
	}
}

// command runs a command of the agent.
func (o outputs) command(args ...string) {
	o.t.Helper()
	stdout, stderr, _ := runToEnd(o.t, time.Minute, o.a.name, append(args, "--config.file", o.a.config, "--storage.path", o.a.storage, "--log.level", "debug")...)
	o.found["hwsagent "+strings.Join(args, " ")] += stdout + stderr
	if stdout+stderr == "" {
		o.t.Errorf("%v prints nothing", args)
	}
}

// wrongTypes returns what a value with a secret may be put as that belongs to no key.
func wrongTypes() map[string]func(*yaml.Node) *yaml.Node {
	text := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s, Tag: "!!str"} }
	return map[string]func(*yaml.Node) *yaml.Node{
		"a list": func(n *yaml.Node) *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{n}} },
		"lists": func(n *yaml.Node) *yaml.Node {
			return &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{{Kind: yaml.SequenceNode, Content: []*yaml.Node{n}}}}
		},
		"a mapping": func(n *yaml.Node) *yaml.Node {
			return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text("x"), n}}
		},
	}
}

// brokenReloads replaces each value that contains a canary by something of the wrong kind: itself as a list or mapping,
// and a text in place of the mapping or list that holds it. It collects the agent's output for the reload, on its pages
// and to its commands.
func (o outputs) brokenReloads() {
	o.t.Helper()
	whole, err := os.ReadFile(o.a.config)
	if err != nil {
		o.t.Fatal(err)
	}
	broken := map[string][]byte{
		"keys":   []byte(strings.NewReplacer("url: ", "ulr: ", "token: ", "tokn: ", "password: ", "pasword: ", "{name: ", "{bogus: 1, name: ").Replace(string(whole))),
		"syntax": []byte(strings.Replace(string(whole), "remote_write:", "remote_write: [", 1)),
		"colon":  []byte(strings.ReplaceAll(string(whole), "CANARY", "CANARY: ")),
		"space":  []byte(strings.ReplaceAll(string(whole), "127.0.0.1:", "127.0.0.1 x:")),
		"alias":  []byte(strings.Replace(string(whole), "password: CANARY", "password: *CANARY", 1)),
	}
	for name, as := range wrongTypes() {
		broken[name] = o.rewritten(whole, func(n *yaml.Node) *yaml.Node { return as(n) }, false)
	}
	broken["its holder"] = o.rewritten(whole, nil, true)
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range broken {
			if !yield(name) {
				return
			}
		}
	}) {
		writeFile(o.t, o.a.config, string(broken[name]))
		code, body, err := o.a.ask(http.MethodPost, "/-/reload")
		if err != nil || code == http.StatusOK {
			o.t.Errorf("a reload with %s broken: %d %v", name, code, err)
		}
		o.found["POST /-/reload, broken: "+name] = body
		for _, path := range []string{"/", "/api/v1/status"} {
			if _, body, err := o.a.ask(http.MethodGet, path); err == nil {
				o.found["GET "+path+", broken: "+name] = body
			}
		}
		o.command("reload")
		o.command("reload", "--json")
		o.command("check", "--no-network")
		o.command("check", "--no-network", "--json")
		o.command("status")
	}
	writeFile(o.t, o.a.config, string(whole))
}

// rewritten returns a configuration with each value that has a canary replaced, or with holder the innermost
// mapping or list that is not an entry by the canary.
func (o outputs) rewritten(whole []byte, as func(*yaml.Node) *yaml.Node, holder bool) []byte {
	o.t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal(whole, &doc); err != nil {
		o.t.Fatal(err)
	}
	n := 0
	var walk func(v *yaml.Node, depth int) (*yaml.Node, bool)
	walk = func(v *yaml.Node, depth int) (*yaml.Node, bool) {
		if v.Kind == yaml.ScalarNode {
			if !strings.Contains(v.Value, "CANARY") {
				return v, false
			}
			n++
			if as != nil {
				return as(v), false
			}
			return v, true
		}
		for i, inner := range v.Content {
			if v.Kind == yaml.MappingNode && i%2 == 0 {
				continue
			}
			var has bool
			v.Content[i], has = walk(inner, depth+1)
			if has && holder && depth > 3 {
				return &yaml.Node{Kind: yaml.ScalarNode, Value: "CANARY-holder", Tag: "!!str"}, false
			}
		}
		return v, false
	}
	walk(&doc, 0)
	if n < 10 {
		o.t.Fatalf("only %d values with a canary", n)
	}
	text, err := yaml.Marshal(&doc)
	if err != nil {
		o.t.Fatal(err)
	}
	return text
}

// crash ends the agent with a dump of all goroutines, and takes what it has logged.
func (o outputs) crash() {
	o.t.Helper()
	if err := o.a.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		o.t.Fatal(err)
	}
	<-o.a.done
	dump := o.a.logText()
	if !strings.Contains(dump, "SIGQUIT: quit") || !strings.Contains(dump, "goroutine ") || !strings.Contains(strings.ToUpper(dump), "LEVEL=DEBUG") {
		o.t.Errorf("the log has no dump, or nothing at debug:\n%s", o.a.tail(30))
	}
	o.found["log and crash"] = dump
}

// files collects every file in the storage directory, which other users must not be able to read.
func (o outputs) files() {
	o.t.Helper()
	err := filepath.WalkDir(o.a.storage, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if perm := info.Mode().Perm(); perm&0o077 != 0 {
			o.t.Errorf("%s can be used by others: %#o", path, perm)
		}
		if !info.Mode().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		o.found["file "+path] = string(b)
		return err
	})
	if err != nil {
		o.t.Fatal(err)
	}
}

// search looks for secrets in all of it, which are at least so many outputs.
func (o outputs) search(least int, secrets []string) {
	o.t.Helper()
	if len(o.found) < least {
		o.t.Errorf("only %d outputs", len(o.found))
	}
	for where, text := range o.found {
		if leak := leaks(text, secrets); leak != "" {
			o.t.Errorf("%s shows a secret, %s", where, leak)
		}
	}
	o.t.Log(fmt.Sprint(len(o.found), " outputs were searched"))
}
