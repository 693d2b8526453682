package library

import (
	"regexp"

	"hwsagent/probes/hw"
)

// Definition describes one family of devices, or one standard MIB.
type Definition struct {
	Name     string // the name by which others include it
	Vendor   string // "" for a standard
	detects  []detect
	includes []string
	replaces []string // less specific definitions, which are skipped for such a device
	fills    bool     // it skips objects that earlier definitions have read
	oneOf    string   // of the definitions with the same word only the first match is read
	rank     int      // its place among the filling ones
	tables   []*table
	file     string
	line     int
}

// detect is one way to recognise a device; unset conditions count as met.
type detect struct {
	objectIDs []OID          // sysObjectID is one of these or below it
	pattern   *regexp.Regexp // the dotted sysObjectID matches
	descr     *regexp.Regexp // sysDescr matches
	present   OID            // the device has this object
	value     *regexp.Regexp // and the first object at or below it has a matching value
	unless    []detect       // none of these is met
	always    bool
	family    string
}

// table is one table of a MIB, or a group of scalars, treated as a table with the index 0.
type table struct {
	object  string // its name in the MIB
	mib     string
	entry   OID
	scalar  bool
	kind    hw.Kind
	kindBy  *choice[hw.Kind] // by a column of the row, in place of kind
	name    template
	when    []condition
	values  []*value
	facts   []fact
	columns []OID // to read: those of the values, the name, conditions and facts
	objects []OID // single objects to read beside the columns
}

// fact is a label of hw_component_info.
type fact struct {
	label string
	text  template
}

// column is a column of the table by its number below the entry, or of another table by its OID; the row's
// index applies to both.
type column struct {
	arcs     OID
	absolute bool
}

// condition keeps the rows whose referenced text has one of the values or passes all tests, or that meet all of several conditions; a
// negated one keeps the others.
type condition struct {
	ref    ref
	all    []condition
	values map[string]bool
	tests  []func(text string, there bool) bool
	not    bool
}

// value is one column that is a reading, a limit or a state.
type value struct {
	object   string
	column   column
	quantity *quantity // nil for states and bits, and if metricBy determines it
	states   map[string]hw.Status
	bits     []hw.Status // of BITS: the state that each means when it is set
	other    hw.Status   // for values that states lacks
	scale    float64
	offset   float64
	signed   bool
	limit    string
	at       string   // hw_sensor_location
	sensor   template // the value is a separate component with this name
	kind     hw.Kind  // of that component
	hasKind  bool
	find     *regexp.Regexp // its first group is the value in a longer text; nil for the whole value
	not      map[string]bool
	equals   map[string]bool // the reading is 1 for these raw values and 0 for others
	least    float64         // raw values below least or above most are ignored
	most     float64
	convert  func(float64) float64 // after scale and offset
	when     []condition

	metricBy  *choice[*quantity]
	scaleBy   *choice[float64]
	precision *column // number of decimal places
}

// choice selects a property by another column of the row.
type choice[T any] struct {
	column column
	values map[string]T
}
