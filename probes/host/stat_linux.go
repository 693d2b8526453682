package host

import (
	"bytes"
	"context"
	"fmt"

	"hwsagent/probes"
)

// loadavg reads /proc/loadavg.
type loadavg struct {
	file     file
	families [3]*probes.Family
}

func newLoadavg(e *environment) reader {
	return &loadavg{file: file{path: e.proc("loadavg")}, families: [3]*probes.Family{
		gauge("node_load1", "Load average over one minute."),
		gauge("node_load5", "Load average over five minutes."),
		gauge("node_load15", "Load average over fifteen minutes."),
	}}
}

func (l *loadavg) read(_ context.Context, r *probes.Round) error {
	b, err := l.file.read()
	if err != nil {
		return err
	}
	b = bytes.TrimSpace(b)
	for _, f := range l.families {
		var digits []byte
		digits, b = word(b)
		v, ok := float(digits)
		if !ok {
			return fmt.Errorf("parse %s: %q is not a load", l.file.path, digits)
		}
		r.Add(f, v)
	}
	return nil
}

// stat reads /proc/stat except for the CPUs.
type stat struct {
	file     file
	families map[string]*probes.Family
}

func newStat(e *environment) reader {
	return &stat{file: file{path: e.proc("stat")}, families: map[string]*probes.Family{
		"intr":          counter("node_intr_total", "Interrupts served since boot."),
		"ctxt":          counter("node_context_switches_total", "Context switches since boot."),
		"processes":     counter("node_forks_total", "Processes and threads started since boot."),
		"btime":         gauge("node_boot_time_seconds", "When the machine booted, in seconds since the epoch."),
		"procs_running": gauge("node_procs_running", "Processes that run or could run."),
		"procs_blocked": gauge("node_procs_blocked", "Processes that wait for I/O."),
	}}
}

func (s *stat) read(_ context.Context, r *probes.Round) error {
	b, err := s.file.read()
	if err != nil {
		return err
	}
	for line := range lines(b) {
		name, rest := word(line)
		f := s.families[string(name)]
		if f == nil {
			continue
		}
		digits, _ := word(rest)
		if v, ok := float(digits); ok {
			r.Add(f, v)
		}
	}
	return nil
}
