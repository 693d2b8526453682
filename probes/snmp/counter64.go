package snmp

import (
	"fmt"
	"strings"
)

// highCapacity is the entry of ifXTable, which has Counter64 columns: RFC 2863 section 6.
const highCapacity = "1.3.6.1.2.1.31.1.1.1"

// wide returns the metrics of m that are probably 64-bit counters: those of ifXTable, and those with HC in
// their name, by the custom of MIBs. Modules do not say the size of a counter.
func wide(m *compiled) (names []string) {
	x := mustOID(highCapacity)
	for i := range m.metrics {
		c := &m.metrics[i]
		column := c.at.hasPrefix(x) && c.at[len(x)] >= 6 && c.at[len(x)] <= 13
		if c.typ == typeCounter && (column || strings.Contains(c.name, "HC")) {
			names = append(names, c.name)
		}
	}
	return names
}

// missingInV1 reports the counters that version 1 cannot carry: RFC 3584 section 4.2.2.1.
func missingInV1(modules []*compiled) (notes []*Note) {
	for _, m := range modules {
		if names := wide(m); len(names) > 0 {
			notes = append(notes, &Note{
				File: "module " + m.name,
				Text: fmt.Sprintf("version 1 has no 64-bit counters: %s and %d more have no samples", names[0], len(names)-1),
				Try:  "write auth: {version: 2} if the device can",
			})
		}
	}
	return notes
}
