package library

import (
	"regexp"

	"hwsagent/probes/hw"
)

// Definition is what is known of one family of devices, or of one standard MIB.
type Definition struct {
	Name     string // the word by which others include it
	Vendor   string // "" for a standard
	detects  []detect
	includes []string
	replaces []string // definitions that say less of such a device, and are not read
	fills    bool     // it skips objects that definitions before it have read
	oneOf    string   // of the definitions with the same word only the first that fits is read
	rank     int      // its place among those that fill
	tables   []*table
	file     string
	line     int
}

// detect is one way to recognise a device; what is not said counts as met.
type detect struct {
	objectIDs []OID          // sysObjectID is one of these or below it
	pattern   *regexp.Regexp // the dotted sysObjectID matches
	descr     *regexp.Regexp // sysDescr matches
	present   OID            // the device has this object
	value     *regexp.Regexp // and the first one at or below it has such a value
	unless    []detect       // none of these is met
	always    bool
	family    string
}

// table is one table of a MIB, or a group of scalars, which is a table with the index 0.
type table struct {
	object  string // its name in the MIB
	mib     string
	entry   OID
	scalar  bool
	kind    hw.Kind
	name    template
	when    []condition
	values  []*value
	facts   []fact
	columns []OID // what is read: of the values, the name, conditions and facts
	objects []OID // single objects that are read beside the columns
}

// fact is a label of hw_component_info.
type fact struct {
	label string
	text  template
}

// column is a column of the table by its number below the entry, or of another table by its OID; the index
// is the row's.
type column struct {
	arcs     OID
	absolute bool
}

// condition keeps the rows whose referenced text has one of the values or passes all tests; a negated one keeps the others.
type condition struct {
	ref    ref
	values map[string]bool
	tests  []func(text string, there bool) bool
	not    bool
}

// value is one column that is a reading, a limit or a state.
type value struct {
	object   string
	column   column
	quantity *quantity // nil for a state and where metricBy says it
	states   map[string]hw.Status
	other    hw.Status // of a value that states does not have
	scale    float64
	offset   float64
	signed   bool
	limit    string
	at       string   // hw_sensor_location
	sensor   template // the value is a component of its own, with this name
	kind     hw.Kind  // of that component
	hasKind  bool
	not      map[string]bool
	least    float64 // values below it or above most say nothing; as the device gives them
	most     float64
	convert  func(float64) (float64, bool) // after scale and offset
	when     []condition

	metricBy  *choice[*quantity]
	scaleBy   *choice[float64]
	precision *column // how many of the digits are decimals
}

// choice takes a property from another column of the row.
type choice[T any] struct {
	column column
	values map[string]T
}
