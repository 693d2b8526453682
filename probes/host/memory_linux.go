package host

import (
	"bytes"
	"context"
	"regexp"
	"strings"

	"hwsagent/probes"
)

// meminfo reads /proc/meminfo: "Active(anon): 2019992 kB" becomes node_memory_Active_anon_bytes. New fields of the
// kernel appear automatically.
type meminfo struct {
	file     file
	families familyCache
}

func newMeminfo(e *environment) reader {
	return &meminfo{file: file{path: e.proc("meminfo")}, families: familyCache{make: memoryFamily}}
}

// memoryFamily returns the family for a whole line up to its number, with "kB" behind
// it when the line has a unit.
func memoryFamily(field string) *probes.Family {
	field, inBytes := strings.CutSuffix(field, "kB")
	name := "node_memory_" + strings.NewReplacer("(", "_", ")", "").Replace(field)
	if !inBytes {
		return gauge(name, "The field "+field+" of /proc/meminfo.")
	}
	return gauge(name+"_bytes", "The field "+field+" of /proc/meminfo, in bytes.")
}

func (m *meminfo) read(_ context.Context, r *probes.Round) error {
	b, err := m.file.read()
	if err != nil {
		return err
	}
	var key [64]byte
	for line := range lines(b) {
		field, rest, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		digits, rest := word(rest)
		v, ok := float(digits)
		if !ok {
			continue
		}
		unit, _ := word(rest)
		if len(unit) > 0 {
			v *= 1024
			field = append(append(key[:0], field...), unit...)
		}
		r.Add(m.families.of(field), v)
	}
	return nil
}

// vmstat reads the selected fields of /proc/vmstat. Their type is unknown: the file does not distinguish counters from
// gauges.
type vmstat struct {
	file     file
	families familyCache
}

func newVmstat(e *environment) reader {
	wanted := e.pattern(&e.VmstatFields)
	return &vmstat{file: file{path: e.proc("vmstat")}, families: familyCache{make: func(field string) *probes.Family {
		return wantedFamily(wanted, "node_vmstat_", field, "The field "+field+" of /proc/vmstat.")
	}}}
}

func wantedFamily(wanted *regexp.Regexp, prefix, field, help string) *probes.Family {
	if !wanted.MatchString(field) {
		return nil
	}
	return untyped(prefix+field, help)
}

func (v *vmstat) read(_ context.Context, r *probes.Round) error {
	b, err := v.file.read()
	if err != nil {
		return err
	}
	for line := range lines(b) {
		field, rest := word(line)
		f := v.families.of(field)
		if f == nil {
			continue
		}
		digits, _ := word(rest)
		if n, ok := float(digits); ok {
			r.Add(f, n)
		}
	}
	return nil
}
