package library

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Of an environmental monitor of APC, a contact, a relay and an outlet are well in the state that their row calls the normal one.
func TestMonitorIsWellInItsNormalState(t *testing.T) {
	known, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	const ems = "1.3.6.1.4.1.318.1.1.10.3."
	var lines, want strings.Builder
	for _, table := range []string{"14", "15", "16"} {
		for _, c := range []struct {
			row, state, normal int
			status             string
		}{{1, 1, 1, "ok"}, {2, 2, 1, "degraded"}, {3, 1, 2, "degraded"}, {4, 2, 2, "ok"}} {
			row := func(column int, value any) {
				fmt.Fprintf(&lines, "%s%s.1.1.%d.%d %v\n", ems, table, column, c.row, value)
			}
			row(2, fmt.Sprintf(`"t%s r%d"`, table, c.row))
			row(3, c.state)
			row(4, c.normal)
			fmt.Fprintf(&want, "t%s r%d %s\n", table, c.row, c.status)
		}
	}
	var got strings.Builder
	device := known.Recognise(Identity{ObjectID: "1.3.6.1.4.1.318.1.3.8.4"})
	for _, r := range device.Evaluate(tree(t, lines.String())).Reports {
		fmt.Fprintf(&got, "%s %s\n", r.Name, r.Status)
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A machine with Net-SNMP has the sensors of LM-SENSORS-MIB, also those below zero.
func TestSensorsOfNetSNMP(t *testing.T) {
	known, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	const root = "1.3.6.1.4.1.2021.13.16"
	id := Identity{ObjectID: "1.3.6.1.4.1.8072.3.2.10"}
	if device := known.Recognise(id); len(device.Evaluate(tree(t, root+".3.1.3.1 900")).Reports) > 0 {
		t.Error("the sensors are read of a device that has none of the MIB")
	}
	id.Present = map[string]string{root: ""}
	var got strings.Builder
	for _, r := range known.Recognise(id).Evaluate(tree(t, root+`.2.1.2.1 "outdoor"
`+root+`.2.1.3.1 4294961796
`+root+`.3.1.2.1 "rear"
`+root+`.3.1.3.1 1180
`+root+`.4.1.2.1 "+12V"
`+root+".4.1.3.1 12096")).Reports {
		fmt.Fprintf(&got, "%s %s %v\n", r.Kind, r.ID, r.Readings[0].Value)
	}
	const want = "temperature lm_sensors/outdoor -5.5\nfan lm_sensors/rear 1180\nvoltage lm_sensors/+12V 12.096\n"
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
