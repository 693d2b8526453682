//go:build linux

package main

import (
	"slices"
	"testing"
	"time"
)

func TestCPUOf(t *testing.T) {
	// As of Linux 6.1; the name of a program may hold anything.
	const stat = "4242 (a) 7 (x) S 1 4242 4242 0 -1 4194560 9876 0 3 0 1234 56 7 8 20 0 12 0 8675309 1269104640 30512 18446744073709551615 1 1 0 0 0 0 0 0 2143420159 0 0 0 17 1 0 0 0 0 0"
	if got, err := cpuOf([]byte(stat)); err != nil || got != 12900*time.Millisecond {
		t.Errorf("%s, want 12.9 s: %v", got, err)
	}
	for _, broken := range []string{"", "4242 (a) S 1", "4242 a S 1 4242 4242 0 -1 4194560 9876 0 3 0 1234 56 7 8", "4242 (a) S 1 4242 4242 0 -1 4194560 9876 0 3 0 x 56 7"} {
		if got, err := cpuOf([]byte(broken)); err == nil {
			t.Errorf("%q gives %s", broken, got)
		}
	}
}

func TestValueOf(t *testing.T) {
	const status = "Name:\tVmRSS: 1\nVmPeak:\t  500000 kB\nVmRSS:\t   36196 kB\nRssAnon:\t    9036 kB\nBroken:\nLetters:\tkB\n"
	for name, want := range map[string]int64{"VmPeak": 500000, "VmRSS": 36196, "RssAnon": 9036} {
		if got, err := valueOf([]byte(status), name); err != nil || got != want {
			t.Errorf("%s is %d, want %d: %v", name, got, want, err)
		}
	}
	for _, name := range []string{"RSS", "Broken", "Letters", "write_bytes"} {
		if got, err := valueOf([]byte(status), name); err == nil {
			t.Errorf("%s is %d", name, got)
		}
	}
}

func TestPlainEnvironment(t *testing.T) {
	env := []string{"GOGC=400", "PATH=/bin", "GOMAXPROCS=1", "GOMEMLIMIT=1GiB", "GODEBUG=x=1", "GOGCX=1"}
	if got, want := plainEnvironment(env), []string{"PATH=/bin", "GOGCX=1"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if env[0] != "GOGC=400" {
		t.Error("it changed the environment that it was given")
	}
}

// TestStartedProcessIsMeasured starts a program that does nothing and ends.
func TestStartedProcessIsMeasured(t *testing.T) {
	p, err := start("/bin/sh", []string{"-c", "echo it begins; exec sleep 60"}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.gone(); err != nil {
		t.Errorf("it runs, but %v", err)
	}
	if _, err := p.cpu(); err != nil {
		t.Error(err)
	}
	if m, err := p.memory(); err != nil || m.rss < m.anon || m.anon <= 0 {
		t.Errorf("memory is %v: %v", m, err)
	}
	if _, err := p.written(); err != nil {
		t.Error(err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if err := p.gone(); err == nil {
		t.Error("it was stopped, and nothing says so")
	}
	if err := p.stop(); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}
