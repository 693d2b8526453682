package host

import (
	"fmt"
	"strconv"
	"strings"
)

// newInterrupts reads /proc/interrupts: a line of CPUs, then a line for each interrupt with a count for each CPU. Lines
// with fewer counts (ERR, MIS) are not interrupts of a CPU.
func newInterrupts(e *environment) reader {
	total := counter("node_interrupts_total", "Interrupts, by CPU and kind.")
	path := e.proc("interrupts")
	return newOnce(e, func() (samples, error) {
		b, err := (&file{path: path}).read()
		if err != nil {
			return nil, optional(err)
		}
		var s samples
		cpus := -1
		for line := range lines(b) {
			if cpus < 0 {
				cpus = len(strings.Fields(string(line)))
				continue
			}
			kind, rest, ok := strings.Cut(string(line), ":")
			fields := strings.Fields(rest)
			if !ok || len(fields) <= cpus {
				continue
			}
			kind = strings.TrimSpace(kind)
			info, devices := strings.Join(fields[cpus:], " "), ""
			if _, err := strconv.Atoi(kind); err == nil { // a numbered one: its controller, then its handlers
				info, devices = fields[cpus], strings.Join(fields[cpus+1:], " ")
			}
			for cpu, field := range fields[:cpus] {
				v, ok := float([]byte(field))
				if !ok {
					return s, fmt.Errorf("parse %s: %q is not a count", path, field)
				}
				s.add(total, v, "cpu", strconv.Itoa(cpu), "type", kind, "info", info, "devices", devices)
			}
		}
		return s, nil
	})
}
