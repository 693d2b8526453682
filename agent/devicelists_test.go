package agent

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// names are the probes of the running agent that belong to the list.
func (r *running) listed() string {
	var all []string
	for _, p := range r.runner.Status() {
		if name, ok := strings.CutPrefix(p.Name, "list/"); ok {
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

// The agent follows a list in a file while it runs: added targets start, removed ones stop, others are left alone; a
// broken file changes nothing, also over a reload.
func TestListInAFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "devices.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"targets": ["127.0.0.1:1", "127.0.0.1:2"], "labels": {"site": "a"}}]`)
	r := &running{t: t, file: filepath.Join(dir, "agent.yaml"), done: make(chan error, 1)}
	r.extra = "  - {name: list, type: snmp, file_sd_configs: [{files: ['*.json']}], auth: {community_file: '{site}.txt'}, modules: [system], retries: 0, packet_timeout: 10ms, interval: 1h}\n"
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("public"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.configure()
	startAgentWith(t, r, t.TempDir(), "127.0.0.1:0")
	put := func(what, text, want string, problems int) {
		t.Helper()
		write(text)
		if err := r.changes.do("a test", r.putLists); err != nil {
			t.Fatal(err)
		}
		if got := r.listed(); got != want || len(r.lists.shown) != problems {
			t.Errorf("%s: probes %q, problems %v; want %q, %d", what, got, r.lists.shown, want, problems)
		}
	}
	if got := r.listed(); got != "127.0.0.1:1 127.0.0.1:2" {
		t.Fatalf("%q", got)
	}
	kept := r.ids.known["probe list/127.0.0.1:2"].n
	loaded := r.Status().Config.LoadedAt
	put("one comes, one goes", `[{"targets": ["127.0.0.1:2", "127.0.0.1:3"], "labels": {"site": "a"}}]`, "127.0.0.1:2 127.0.0.1:3", 0)
	if n := r.ids.known["probe list/127.0.0.1:2"].n; n != kept {
		t.Error("a device that stays was replaced")
	}
	put("broken", "[{", "127.0.0.1:2 127.0.0.1:3", 1)
	if got := r.Status().Config.LoadedAt; !got.Equal(loaded) {
		t.Error("a list counts as a load of the configuration")
	}
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := r.listed(); got != "127.0.0.1:2 127.0.0.1:3" {
		t.Errorf("after a reload with a broken list: %q", got)
	}
	put("a device whose secret has no place", `[{"targets": ["127.0.0.1:4"]}, {"targets": ["127.0.0.1:5"], "labels": {"site": "a"}}]`, "127.0.0.1:5", 1)
	put("well again", `[]`, "", 0)

	// The loop itself sees a change.
	write(`[{"targets": ["127.0.0.1:6"], "labels": {"site": "a"}}]`)
	until(t, "the changed list", func() bool { return r.listed() == "127.0.0.1:6" })
}

// TestListAndFailedReload: a reload that fails takes no notice of lists: one that has changed just before is applied all
// the same, and problems of lists that only the refused configuration names are forgotten.
func TestListAndFailedReload(t *testing.T) {
	dir := t.TempDir()
	list := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "devices.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list(`[{"targets": ["127.0.0.1:1"]}]`)
	r := &running{t: t, file: filepath.Join(dir, "agent.yaml"), done: make(chan error, 1)}
	entry := func(files string) string {
		return "  - {name: list, type: snmp, file_sd_configs: [{files: [" + files + "]}], auth: {community: public}, modules: [system], retries: 0, packet_timeout: 10ms, interval: 1h}\n"
	}
	r.extra = entry("devices.json")
	r.configure()
	startAgentWith(t, r, t.TempDir(), "127.0.0.1:0")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	list(`[{"targets": ["127.0.0.1:2"]}]`)
	r.extra = entry("devices.json, 'none*.json'") + fmt.Sprintf("\nreceivers: {import: {listen: %q}}\n", busy.Addr())
	r.configure()
	if err := r.Reload(); err == nil {
		t.Fatal("the port is in use")
	}
	if err := r.changes.do("a test", r.putLists); err != nil { // as the loop does when a file has changed
		t.Fatal(err)
	}
	if got := r.listed(); got != "127.0.0.1:2" || len(r.lists.shown) != 0 || testutil.ToFloat64(r.metrics.listProblems) != 0 {
		t.Errorf("probes %q, problems %v; want that of the changed list", got, r.lists.shown)
	}
	if err := r.Reload(); err == nil {
		t.Fatal("the port is in use")
	}
	if len(r.lists.shown) != 0 || testutil.ToFloat64(r.metrics.listProblems) != 0 {
		t.Errorf("the configuration in force has the problems %v", r.lists.shown)
	}
}
