package host

import (
	"bytes"
	"context"

	"hwsagent/probes"
)

// pressure reads how long tasks waited for resources (the kernel's Documentation/accounting/psi.rst; Linux 4.20, irq
// since 6.1).
type pressure struct {
	resources []pressureResource
}

// pressureResource is one file. "some" is time in which at least one task waited,
// "full" time in which all did; nil where node_exporter does not report it.
type pressureResource struct {
	file       file
	some, full *probes.Family
}

func newPressure(e *environment) reader {
	resource := func(name string, some, full *probes.Family) pressureResource {
		return pressureResource{file{path: e.proc("pressure/" + name)}, some, full}
	}
	return &pressure{[]pressureResource{
		resource("cpu", counter("node_pressure_cpu_waiting_seconds_total", "Time in which tasks waited for a CPU."), nil),
		resource("io",
			counter("node_pressure_io_waiting_seconds_total", "Time in which tasks waited for I/O."),
			counter("node_pressure_io_stalled_seconds_total", "Time in which no task could go on because of I/O.")),
		resource("memory",
			counter("node_pressure_memory_waiting_seconds_total", "Time in which tasks waited for memory."),
			counter("node_pressure_memory_stalled_seconds_total", "Time in which no task could go on for lack of memory.")),
		resource("irq", nil, counter("node_pressure_irq_stalled_seconds_total", "Time in which no task could go on because of interrupts.")),
	}}
}

func (p *pressure) read(_ context.Context, r *probes.Round) error {
	found := false
	for i := range p.resources {
		res := &p.resources[i]
		b, err := res.file.read()
		if err != nil {
			continue // the kernel is too old, or psi=0: then opening works but reading does not
		}
		for line := range lines(b) {
			kind, rest := word(line)
			f := res.some
			if string(kind) == "full" {
				f = res.full
			}
			_, total, ok := bytes.Cut(rest, []byte("total="))
			if v, isNumber := float(total); ok && isNumber && f != nil {
				r.Add(f, v/1000/1000) // microseconds; divided twice by 1000 for node_exporter's rounding
				found = true
			}
		}
	}
	if !found {
		return errAbsent
	}
	return nil
}
