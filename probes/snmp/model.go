package snmp

import (
	"regexp"
	"time"
)

// The model has the structure and the vocabulary of snmp_exporter's snmp.yml, so that the
// loader of such files only has to fill these types.

// module lists the objects to read and the metrics to make of them.
type module struct {
	walk    []string // roots of subtrees
	get     []string // single objects
	metrics []metric
	filters []filter
	params  walkParams
	// derive, if set, makes further samples that a table cannot express, for example with a
	// scale that differs from row to row.
	derive func(*harvest, *emitter)
}

// walkParams are a module's preferences for reading. The probe's own configuration takes
// precedence; the defaults of [Config] come last.
type walkParams struct {
	maxRepetitions int // 0: unset
	retries        *int
	timeout        time.Duration // of one packet; 0: unset
	// nonIncreasing accepts a table whose OIDs are out of order, from broken agents.
	nonIncreasing bool
	// unconnected accepts answers from any address, for devices that answer from another
	// address than the one asked.
	unconnected bool
}

// filter restricts the targets to rows whose value in the column oid matches one of values.
// It compares only the last arc of the row's index, as snmp_exporter does.
type filter struct {
	oid     string
	targets []string
	values  []*regexp.Regexp
}

// metric is one object of a MIB: a scalar or a column of a table.
type metric struct {
	name        string
	oid         string
	typ         metricType
	help        string
	indexes     []index
	lookups     []lookup
	enumValues  map[int]string
	scale       float64 // value × scale + offset; 0 means 1
	offset      float64
	extracts    []extract // numbers found in the text, replacing it
	timePattern string    // of ParseDateAndTime, in the syntax of strptime(3)
	displayHint string    // of OctetString: RFC 2579 section 3.1
}

// extract makes the metric name+suffix from the first rule that matches a text.
type extract struct {
	suffix string
	rules  []extractRule
}

// extractRule matches the whole text; value is the number, with $1 for a group.
type extractRule struct {
	regex *regexp.Regexp
	value string
}

// metricType is the way in which a value becomes samples.
type metricType string

// Types of metrics, indexes and lookups, as snmp.yml names them.
const (
	typeGauge          metricType = "gauge"
	typeCounter        metricType = "counter"
	typeDisplayString  metricType = "DisplayString"
	typeOctetString    metricType = "OctetString"
	typePhysAddress48  metricType = "PhysAddress48"
	typeDateAndTime    metricType = "DateAndTime"
	typeEnumAsInfo     metricType = "EnumAsInfo"
	typeEnumAsStateSet metricType = "EnumAsStateSet"
	// typeInteger32 is not in snmp.yml: a Gauge32 that holds a signed number. LM-SENSORS-MIB
	// declares temperatures so.
	typeInteger32 metricType = "Integer32"
	// typePhysAddress is not in snmp.yml either: all octets of a hardware address, of which PhysAddress48 has the first six.
	typePhysAddress metricType = "PhysAddress"

	typeFloat            metricType = "Float"
	typeDouble           metricType = "Double"
	typeBits             metricType = "Bits"
	typeParseDateAndTime metricType = "ParseDateAndTime"
	typeNTPTimeStamp     metricType = "NTPTimeStamp"
	typeInetAddressIPv4  metricType = "InetAddressIPv4"
	typeInetAddressIPv6  metricType = "InetAddressIPv6"

	// The actual type of these is in the preceding column; see combined.
	typeInetAddress            metricType = "InetAddress"
	typeInetAddressMissingSize metricType = "InetAddressMissingSize"
	typeLldpPortID             metricType = "LldpPortId"
)

// index is one part of a table's index; it becomes the label labelname.
type index struct {
	labelname  string
	typ        metricType
	fixedSize  int  // bytes of a string without a length before it
	implied    bool // the string extends to the end: IMPLIED in the MIB
	enumValues map[int]string
}

// lookup sets the label labelname to the value of another column, in the row that the given
// labels identify. Without labels it removes labelname.
type lookup struct {
	labels      []string
	labelname   string
	oid         string
	typ         metricType
	enumValues  map[int]string
	displayHint string
}

// labelSet holds names and values under construction; names are unique.
type labelSet struct {
	pairs []string
	// arcs are the index numbers from which each label was made, by which lookups find their
	// row; aligned with the pairs.
	arcs []oid
}

func (l *labelSet) place(name string) int { return place(l.pairs, name) }

// place returns where name is in pairs, or -1.
func place(pairs []string, name string) int {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == name {
			return i
		}
	}
	return -1
}

func (l *labelSet) set(name, value string, arcs oid) {
	if i := l.place(name); i >= 0 {
		l.pairs[i+1], l.arcs[i/2] = value, arcs
		return
	}
	l.pairs, l.arcs = append(l.pairs, name, value), append(l.arcs, arcs)
}

func (l *labelSet) delete(name string) {
	if i := l.place(name); i >= 0 {
		l.pairs = append(l.pairs[:i], l.pairs[i+2:]...)
		l.arcs = append(l.arcs[:i/2], l.arcs[i/2+1:]...)
	}
}
