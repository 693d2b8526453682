package nut

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hwsagent/probes"
	"hwsagent/probes/devices"
)

// needProgram skips the test by name where the program is missing; in CI it fails.
func needProgram(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed, and CI must run this test", names[0])
	}
	t.Skipf("%s is not installed (Debian: apt-get install nut-server nut-client libnss3-tools)", names[0])
	return ""
}

// daemon is a program that runs until stop is called or the test ends.
type daemon struct {
	stop func()
	log  *bytes.Buffer // to be read after stop
}

func start(t *testing.T, dir, path string, args ...string) *daemon {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	d := &daemon{log: new(bytes.Buffer)}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{"NUT_CONFPATH=" + dir, "NUT_STATEPATH=" + dir, "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = d.log, d.log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	d.stop = func() { cancel(); <-done }
	t.Cleanup(d.stop)
	return d
}

// startUpsd runs Debian's upsd with a device demo, whose driver plays a dump, and a device absent without a driver.
func startUpsd(t *testing.T) (address string, played, server *daemon) {
	t.Helper()
	path, driver := needProgram(t, "/lib/nut/upsd", "upsd"), needProgram(t, "/lib/nut/dummy-ups")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	_ = l.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ups.conf":   "[demo]\n driver = dummy-ups\n port = demo.dev\n[absent]\n driver = dummy-ups\n port = none.dev\n",
		"upsd.conf":  fmt.Sprintf("LISTEN 127.0.0.1 %s\nMAXAGE 15\n", address[strings.LastIndexByte(address, ':')+1:]),
		"upsd.users": "", "demo.dev": demo(t),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	me := fmt.Sprint(os.Getenv("USER"))
	if os.Getuid() == 0 || me == "" {
		me = "root"
	}
	played = start(t, dir, driver, "-a", "demo", "-u", me, "-D")
	waitFor(t, played, func() bool { _, err := os.Stat(filepath.Join(dir, "dummy-ups-demo")); return err == nil })
	return address, played, start(t, dir, path, "-D", "-u", me)
}

// TestUpsd reads Debian's upsd and compares with upsc, the client of Network UPS Tools.
func TestUpsd(t *testing.T) {
	upsc := needProgram(t, "upsc")
	address, played, daemon := startUpsd(t)
	p := newProbe(t, Config{Target: address, UPS: []string{"demo", "absent"}})
	var got string
	var err error
	waitFor(t, daemon, func() bool {
		got, err = round(t, p)
		// The driver sends its variables in the order of their names: with the last one, upsd has all of them.
		return strings.Contains(got, prefix+"ups_temperature{")
	})
	if err == nil || !strings.Contains(err.Error(), "absent: DRIVER-NOT-CONNECTED") {
		t.Errorf("the device without a driver: %v", err)
	}
	out, err := exec.Command(upsc, "demo@"+address).Output()
	if err != nil {
		t.Fatalf("upsc: %v", err)
	}
	numbers := 0
	for _, v := range parseUpsc(string(out)) {
		if want, ok := number(v); ok {
			numbers++
			line := fmt.Sprintf("%s%s{ups=\"demo\"} %v\n", prefix, underscores(v.name), want)
			if !strings.Contains(got, line) {
				t.Errorf("upsc says %s: %s; the probe lacks %s", v.name, v.value, line)
			}
		}
	}
	if numbers < 20 {
		t.Errorf("upsc gives only %d numbers:\n%s", numbers, out)
	}
	for _, line := range []string{
		`hw_status{hw_id="ups:demo",hw_name="demo",hw_state="degraded",hw_type="power_supply"} 1`,
		`hw_status{hw_id="ups:demo/battery",hw_name="demo battery",hw_parent="ups:demo",hw_state="predicted_failure",hw_type="battery"} 1`,
		`hw_serial_number="000123"`, `network_ups_tools_ups_alarm_info{alarm="Replace battery!",ups="demo"} 1`,
	} {
		if !strings.Contains(got, line) {
			t.Errorf("%s is missing in\n%s", line, got)
		}
	}
	played.stop() // the driver is gone: its readings end, its states are unknown
	waitFor(t, daemon, func() bool {
		got, err = round(t, p)
		return !strings.Contains(got, "hw_battery_charge_ratio{")
	})
	if err == nil || !strings.Contains(got, `hw_status{hw_id="ups:demo/battery",hw_name="demo battery",hw_parent="ups:demo",hw_state="unknown",hw_type="battery"} 1`) {
		t.Errorf("without its driver: %v\n%s", err, got)
	}
}

// TestUpsdLogin: the real upsd takes names and passwords as they are quoted, and says that it has no TLS.
func TestUpsdLogin(t *testing.T) {
	server := needProgram(t, "/lib/nut/upsd", "upsd")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ups.conf":  "[absent]\n driver = dummy-ups\n port = none.dev\n",
		"upsd.conf": fmt.Sprintf("LISTEN 127.0.0.1 %s\n", address[strings.LastIndexByte(address, ':')+1:]), "upsd.users": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	daemon := start(t, dir, server, "-D", "-u", "root")
	p := newProbe(t, Config{Target: address, Username: "a", Password: `b "c" \`})
	waitFor(t, daemon, func() bool {
		err = p.Collect(t.Context(), probes.NewRound(0))
		return err != nil && strings.Contains(err.Error(), "absent: DRIVER-NOT-CONNECTED")
	})
	err = newProbe(t, Config{Target: address, StartTLS: true}).Collect(t.Context(), probes.NewRound(0))
	if err == nil || !strings.Contains(err.Error(), "begin TLS: FEATURE-NOT-CONFIGURED: upsd has no certificate for TLS: set CERTFILE in upsd.conf, or CERTPATH and CERTIDENT") || reasonOf(err) != devices.TLS {
		t.Errorf("TLS without a certificate: %v", err)
	}
}

func waitFor(t *testing.T, d *daemon, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ready(); {
		if time.Now().After(deadline) {
			d.stop()
			t.Fatalf("it does not come about; the daemon says:\n%s", d.log.Bytes()[:min(4000, d.log.Len())])
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// parseUpsc reads what upsc prints, name: value.
func parseUpsc(out string) []variable {
	var all []variable
	for line := range strings.Lines(out) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			all = append(all, variable{name, value})
		}
	}
	return all
}
