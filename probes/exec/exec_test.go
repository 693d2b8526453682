//go:build linux

package exec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	"go.uber.org/goleak"

	"hwsagent/probes"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "exporter" {
		serveMetrics(os.Args[2], os.Args[3])
		return
	}
	goleak.VerifyTestMain(m)
}

// serveMetrics is the exporter of these tests: it serves its process number, and exits on request.
func serveMetrics(port, file string) {
	if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		panic(err)
	}
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE me gauge\nme{word=%q} %d\n", os.Getenv("WORD"), os.Getpid())
	})
	http.HandleFunc("/die", func(http.ResponseWriter, *http.Request) {
		fmt.Fprintln(os.Stderr, "told to die")
		os.Exit(3)
	})
	fmt.Fprintln(os.Stderr, http.ListenAndServe("127.0.0.1:"+port, nil))
}

func newProbe(t *testing.T, c Config) *Probe {
	t.Helper()
	p, err := New(c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// shell returns a command that runs a script.
func shell(script string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", script, "sh"}, args...)
}

func collect(t *testing.T, p *Probe, limit time.Duration) ([]string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r := probes.NewRound(0)
	err := p.Collect(ctx, r)
	var all []string
	for _, s := range r.Samples() {
		all = append(all, fmt.Sprintf("%s%q %v", s.Family.Name, s.Labels, s.Value))
	}
	return all, err
}

func TestRun(t *testing.T) {
	t.Setenv("HWSAGENT_TEST_LEAK", "secret of the agent")
	p := newProbe(t, Config{
		Command: shell(`echo "# TYPE a gauge"; echo "a{word=\"$WORD\",leak=\"$HWSAGENT_TEST_LEAK\",dir=\"$PWD\",arg=\"$1\"} 4"`, "x; rm -rf $HOME"),
		Env:     map[string]config.Secret{"WORD": "hello"},
	})
	got, err := collect(t, p, time.Minute)
	if err != nil || len(got) != 1 || got[0] != `a["arg" "x; rm -rf $HOME" "dir" "/" "leak" "" "word" "hello"] 4` {
		t.Errorf("%v %q", err, got)
	}
}

// A failing command is reported, and none of its output is kept.
func TestRunFails(t *testing.T) {
	for _, tc := range []struct {
		name, script, want string
	}{
		{"status", "echo a 1; echo disk on fire >&2; exit 4", "exit status 4; it said: disk on fire"},
		{"malformed", "echo a 1; echo b", "read the exposition"},
		{"too much", `while :; do echo "a 1"; done`, "max_output"},
		{"signal", "kill -9 $$", "signal: killed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := collect(t, newProbe(t, Config{Command: shell(tc.script), MaxOutput: 4096}), time.Minute)
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(got) > 0 {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
	p := newProbe(t, Config{Command: shell(`echo "cannot log in with $T" >&2; exit 1`), Env: map[string]config.Secret{"T": "hunter2222"}})
	if _, err := collect(t, p, time.Minute); err == nil || !strings.HasSuffix(err.Error(), "it said: cannot log in with <secret>") {
		t.Errorf("what it says: %v", err)
	}
	if _, err := collect(t, newProbe(t, Config{Command: []string{"/nonexistent/program"}}), time.Minute); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a command that is not there: %v", err)
	}
}

// alive reports whether a process is there and is not a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// number waits for a file that holds a process number.
func number(t *testing.T, file string) int {
	t.Helper()
	for range 2000 {
		if b, err := os.ReadFile(file); err == nil {
			if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
				return n
			}
		}
		time.Sleep(5 * time.Millisecond) // another process writes it
	}
	t.Fatalf("%s was never written", file)
	return 0
}

// The whole group dies: with the timeout, and when the command ends and leaves something behind that
// would keep the output open.
func TestGroupIsKilled(t *testing.T) {
	for name, end := range map[string]string{"timeout": "wait", "left behind": "exit 0"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "child")
			p := newProbe(t, Config{Command: shell(`echo a 1; sleep 600 & echo $! >"$1.new"; mv "$1.new" "$1"; `+end, file)})
			limit := time.Minute
			if name == "timeout" {
				limit = 300 * time.Millisecond
			}
			for begun := false; !begun; limit *= 3 { // a busy machine may not get as far as the child
				begin := time.Now()
				got, err := collect(t, p, limit)
				if name == "timeout" && (!errors.Is(err, context.DeadlineExceeded) || len(got) > 0) || name != "timeout" && (err != nil || len(got) != 1) {
					t.Errorf("%q %v", got, err)
				}
				if took := time.Since(begin); took > limit+30*time.Second {
					t.Errorf("took %s", took)
				}
				_, err = os.Stat(file)
				if begun = err == nil; !begun && limit > time.Minute/3 {
					t.Fatalf("no child within %s", limit)
				}
			}
			child := number(t, file)
			for range 1000 {
				if !alive(child) {
					return
				}
				time.Sleep(5 * time.Millisecond) // the kernel takes its time
			}
			t.Errorf("process %d of the group is still there", child)
		})
	}
}

// testExporter returns the configuration of this binary as an exporter.
func testExporter(t *testing.T) (Config, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pid")
	return Config{
		Command: []string{self, "exporter", port, file}, Env: map[string]config.Secret{"WORD": "port " + port},
		ScrapeURL: "http://127.0.0.1:" + port + "/metrics?token=hidden",
	}, file
}

// An exporter is started with the first round, is scraped, is started again when it dies, and ends with
// the probe.
func TestExporter(t *testing.T) {
	c, file := testExporter(t)
	p, err := New(c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := collect(t, p, time.Minute)
	first := number(t, file)
	url, _ := p.exporter.address()
	if err != nil || len(got) != 1 || !strings.HasSuffix(got[0], fmt.Sprint(" ", first)) || strings.Contains(string(url), port) {
		t.Fatalf("%v %q from %s, process %d", err, got, url, first)
	}
	if resp, err := http.Get(strings.Replace(string(url), "/metrics", "/die", 1)); err == nil {
		resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	told := false
	var last string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		got, err := collect(t, p, 10*time.Second)
		if err != nil && strings.Contains(err.Error(), "exit status 3; it said: told to die; it is started again after 1s") {
			told = true
		}
		if err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("the query shows: %v", err)
		}
		if err == nil && len(got) == 1 {
			last = got[0]
			if !strings.HasSuffix(last, fmt.Sprint(" ", first)) {
				break
			}
		}
		time.Sleep(20 * time.Millisecond) // of another process
	}
	second := number(t, file)
	if !told || second == first || !strings.HasSuffix(last, fmt.Sprint(" ", second)) {
		t.Errorf("its end was told: %t; processes %d, then %d; last %s", told, first, second, last)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if alive(second) {
		t.Errorf("process %d is still there after Close", second)
	}
}

// An exporter that ends at once costs a start now and then, not one a moment.
func TestExporterBacksOff(t *testing.T) {
	file := filepath.Join(t.TempDir(), "starts")
	p := newProbe(t, Config{Command: shell(`echo x >>"$1"; exit 1`, file), ScrapeURL: "http://127.0.0.1:" + port + "/"})
	var err error
	for range 50 {
		if _, err = collect(t, p, time.Second); err != nil && strings.Contains(err.Error(), "again after") {
			break
		}
		time.Sleep(10 * time.Millisecond) // of another process
	}
	starts, readErr := os.ReadFile(file)
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || readErr != nil || len(starts) > 2*3 {
		t.Errorf("%v; starts %q, %v", err, starts, readErr)
	}
}

// The exporter does not outlive an agent that is killed.
func TestExporterDiesWithTheAgent(t *testing.T) {
	if os.Getenv("HWSAGENT_TEST_PARENT") != "" {
		c, _ := testExporter(t)
		c.Command[3] = os.Getenv("HWSAGENT_TEST_PARENT")
		p, err := New(c, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = collect(t, p, time.Minute)
		fmt.Println("running", err)
		select {}
	}
	file := filepath.Join(t.TempDir(), "pid")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestExporterDiesWithTheAgent$")
	cmd.Env = append(os.Environ(), "HWSAGENT_TEST_PARENT="+file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := number(t, file)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for range 2000 {
		if !alive(child) {
			return
		}
		time.Sleep(5 * time.Millisecond) // the kernel takes its time
	}
	_ = syscall.Kill(child, syscall.SIGKILL)
	t.Errorf("exporter %d outlived its parent", child)
}

func TestValidate(t *testing.T) {
	good := Config{Command: []string{"/bin/true"}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]Config{
		"needs a command":     {},
		"not an absolute":     {Command: []string{"true"}},
		"is not a name":       {Command: good.Command, Env: map[string]config.Secret{"A=B": "x"}},
		"directory":           {Command: good.Command, Directory: "x"},
		"max_output":          {Command: good.Command, MaxOutput: -1},
		"not on this host":    {Command: good.Command, ScrapeURL: "http://192.0.2.1:{{port}}/metrics"},
		"is not http":         {Command: good.Command, ScrapeURL: "https://127.0.0.1/"},
		"add scrape_url: htt": {Command: []string{"/bin/true", "--port={{port}}"}},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}
