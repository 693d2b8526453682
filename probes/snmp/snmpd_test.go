package snmp

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hwsagent/probes"
)

// daemon is a running Net-SNMP snmpd.
type daemon struct {
	port int
	dir  string
	cmd  *exec.Cmd
	done chan struct{}
}

func (d *daemon) target(network string) string {
	return fmt.Sprintf("%s:127.0.0.1:%d", network, d.port)
}

// needProgram skips the test by name where the program is missing; in CI it fails.
func needProgram(t testing.TB, name string) string {
	t.Helper()
	for _, p := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(p); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed, and CI must run this test", name)
	}
	t.Skipf("%s is not installed (Debian: apt-get install snmpd snmp)", name)
	return ""
}

// nextPort starts at a place of this process's own.
var nextPort atomic.Int64

// freePort is a loopback port that is free for UDP and TCP. It lies below the range from which the
// system takes ports: the listener of another test cannot take it before snmpd does, or while snmpd restarts.
func freePort(t testing.TB) int {
	t.Helper()
	const from, to = 10000, 13000
	for range to - from {
		port := from + int(nextPort.Add(1)+int64(os.Getpid()*37))%(to-from)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		u, err := net.ListenPacket("udp", l.Addr().String())
		_ = l.Close()
		if err != nil {
			continue
		}
		_ = u.Close()
		return port
	}
	t.Fatal("no port is free for both UDP and TCP")
	return 0
}

func startSnmpd(t testing.TB) *daemon {
	t.Helper()
	d := &daemon{port: freePort(t), dir: t.TempDir()}
	d.start(t, "0x80001f8803687773746573743031")
	t.Cleanup(func() { d.stop(t) })
	return d
}

// start runs snmpd with that engine ID and waits until it listens.
func (d *daemon) start(t testing.TB, engineID string) {
	t.Helper()
	path := needProgram(t, "snmpd")
	var conf bytes.Buffer
	for _, f := range []string{"snmpd.conf", "hardware.conf"} {
		b, err := os.ReadFile(filepath.Join("testdata", f))
		if err != nil {
			t.Fatal(err)
		}
		conf.Write(b)
	}
	fmt.Fprintf(&conf, "exactEngineID %s\n", engineID)
	file := filepath.Join(d.dir, "snmpd.conf")
	if err := os.WriteFile(file, conf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	d.cmd = exec.Command(path, "-f", "-Lf", filepath.Join(d.dir, "log"), "-C", "-c", file,
		"-p", filepath.Join(d.dir, "pid"), "-I", "-smux",
		fmt.Sprintf("udp:127.0.0.1:%d", d.port), fmt.Sprintf("tcp:127.0.0.1:%d", d.port))
	d.cmd.Env = append(os.Environ(), "SNMP_PERSISTENT_DIR="+filepath.Join(d.dir, "var"), "MIBS=", "SNMPCONFPATH="+d.dir)
	if err := d.cmd.Start(); err != nil {
		t.Fatalf("start snmpd: %v", err)
	}
	d.done = make(chan struct{})
	go func() { _ = d.cmd.Wait(); close(d.done) }()
	for deadline := time.Now().Add(20 * time.Second); ; {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", d.port), time.Second)
		if err == nil {
			_ = c.Close()
			return
		}
		select {
		case <-d.done:
			t.Fatalf("snmpd ended at once: %s", d.log())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("snmpd does not listen: %s", d.log())
		}
	}
}

func (d *daemon) log() string {
	b, _ := os.ReadFile(filepath.Join(d.dir, "log"))
	return string(b)
}

func (d *daemon) stop(t testing.TB) {
	t.Helper()
	_ = d.cmd.Process.Kill()
	<-d.done
}

// ask runs a Net-SNMP client with v2c: a codec that is not ours.
func (d *daemon) ask(t testing.TB, program string, args ...string) string {
	t.Helper()
	args = append([]string{"-v2c", "-c", "hwtest", "-On", "-m", "", fmt.Sprintf("127.0.0.1:%d", d.port)}, args...)
	out, err := exec.Command(needProgram(t, program), args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", program, args, err)
	}
	return string(out)
}

func v2() Auth { return Auth{Community: "hwtest"} }

func newProbe(t testing.TB, c Config) *Probe {
	t.Helper()
	p, err := New(c, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// collect runs one round of at most ten seconds. It omits the series about whether the device answers:
// other tests cover them.
func collect(t testing.TB, p *Probe) (*probes.Round, error) {
	t.Helper()
	all, err := collectAll(t, p)
	r := probes.NewRound(0)
	for _, s := range all.Samples() {
		if !strings.HasPrefix(s.Family.Name, "hwsagent_device_") {
			r.AddSample(s)
		}
	}
	return r, err
}

// collectAll runs one round of at most ten seconds.
func collectAll(t testing.TB, p *Probe) (*probes.Round, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r := probes.NewRound(0)
	err := p.Collect(ctx, r)
	return r, err
}

// lines are the samples of a round as text, without empty labels and in label order.
func lines(r *probes.Round) map[string]float64 {
	m := make(map[string]float64)
	for _, s := range r.Samples() {
		m[series(s)] = s.Value
	}
	return m
}

func series(s probes.Sample) string {
	var ls []string
	for i := 0; i < len(s.Labels); i += 2 {
		if s.Labels[i+1] != "" {
			ls = append(ls, fmt.Sprintf("%s=%q", s.Labels[i], s.Labels[i+1]))
		}
	}
	slices.Sort(ls)
	return s.Family.Name + "{" + strings.Join(ls, ",") + "}"
}
