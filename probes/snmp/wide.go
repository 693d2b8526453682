package snmp

import (
	"fmt"
	"strings"
)

// highCapacity are the columns of ifXTable that are Counter64: RFC 2863 section 6.
const highCapacity = "1.3.6.1.2.1.31.1.1.1"

// wide are the metrics of m that are 64-bit counters as far as one can tell: those of ifXTable, and those with
// HC in their name, the custom of MIBs for them. Modules do not say the size of a counter.
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

// missingInV1 tells which counters version 1 cannot carry: RFC 3584 section 4.2.2.1.
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
