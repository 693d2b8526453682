package host

import (
	"bytes"
	"encoding/binary"
	"strings"

	"hwsagent/probes/hw"
)

// Numbers of the SMBIOS Reference Specification (DMTF, DSP0134, version 3.7.0): sections 6.1 (structures), 7.18 (Memory Device) and 7.45 (the end).
const (
	smbiosHeader       = 4 // bytes: type, length, handle
	smbiosMemoryDevice = 17
	smbiosEnd          = 127

	memorySize         = 0x0c // 16 bits: MiB, or KiB with the highest bit; 0 for an empty slot
	memoryLocator      = 0x10 // numbers of strings
	memoryBank         = 0x11
	memoryKind         = 0x12
	memoryVendor       = 0x17
	memorySerial       = 0x18
	memoryPart         = 0x1a
	memoryExtendedSize = 0x1c // 32 bits, in MiB, if the size is memoryLarge
	memoryLarge        = 0x7fff
	memoryUnknownSize  = 0xffff
)

// memoryKinds are the types of section 7.18.2 that are in use.
var memoryKinds = map[byte]string{
	0x0f: "SDRAM", 0x12: "DDR", 0x13: "DDR2", 0x18: "DDR3", 0x1a: "DDR4", 0x1b: "LPDDR", 0x1c: "LPDDR2", 0x1d: "LPDDR3", 0x1e: "LPDDR4", 0x20: "HBM", 0x21: "HBM2", 0x22: "DDR5", 0x23: "LPDDR5", 0x24: "HBM3",
}

// memoryModules returns the memory modules that the firmware describes in its table of SMBIOS structures. It skips empty slots, and ends at a
// structure that exceeds the table.
func memoryModules(table []byte) []hw.Report {
	var found []hw.Report
	for len(table) >= smbiosHeader && table[0] != smbiosEnd {
		kind, length := table[0], int(table[1])
		if length < smbiosHeader || length > len(table) {
			break
		}
		fields, rest := table[:length], table[length:]
		texts, after, ok := bytes.Cut(rest, []byte{0, 0})
		if !ok {
			texts, after = rest, nil
		}
		if kind == smbiosMemoryDevice {
			if p, ok := memoryDevice(fields, bytes.Split(texts, []byte{0})); ok {
				found = append(found, p)
			}
		}
		table = after
	}
	return found
}

// identityFacts is the length of the first facts of memoryDevice: vendor, model, serial number, with their names.
const identityFacts = 6

// memoryDevice turns a structure of the type Memory Device into a report, unless the slot is empty.
func memoryDevice(fields []byte, texts [][]byte) (hw.Report, bool) {
	if len(fields) <= memoryKind {
		return hw.Report{}, false
	}
	text := func(at int) string {
		if at >= len(fields) || fields[at] == 0 || int(fields[at]) > len(texts) {
			return ""
		}
		switch s := padded(texts[fields[at]-1]); strings.ToLower(s) {
		case "unknown", "not specified", "undefined", "none", "n/a":
			return ""
		default:
			return s
		}
	}
	p := hw.Report{Component: hw.Component{Kind: hw.Memory, Name: text(memoryLocator), Parent: enclosureID, Facts: []string{
		hw.Vendor, text(memoryVendor), hw.Model, text(memoryPart), hw.Serial, text(memorySerial), hw.MemoryType, memoryKinds[fields[memoryKind]]}}}
	place := joined(text(memoryBank) + " " + p.Name)
	if place == "" {
		place = "unnamed"
	}
	p.ID = firmwareModule + place
	switch size := binary.LittleEndian.Uint16(fields[memorySize:]); {
	case size == 0:
		return hw.Report{}, false
	case size == memoryUnknownSize:
	case size == memoryLarge && len(fields) >= memoryExtendedSize+4:
		p.Add(hw.MemorySize, float64(binary.LittleEndian.Uint32(fields[memoryExtendedSize:])&0x7fffffff)*(1<<20))
	case size&0x8000 != 0:
		p.Add(hw.MemorySize, float64(size&0x7fff)*(1<<10))
	default:
		p.Add(hw.MemorySize, float64(size)*(1<<20))
	}
	return p, true
}

// joined returns a text with an underscore in place of blanks.
func joined(s string) string { return strings.Join(strings.Fields(s), "_") }
