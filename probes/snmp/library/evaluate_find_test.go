package library

import (
	"strings"
	"testing"
)

// A reading may stand in a text; a text without one is no reading, and a pattern without a group is an error.
func TestReadingInText(t *testing.T) {
	const text = `definition: x
mib: X-MIB
detect: [{always: true}]
tables:
  - table: xTable
    entry: 1.3.6.1.4.1.99999.1
    kind: temperature
    name: "{#}"
    values:
      - {object: xMessage, column: 1, metric: temperature, find: '(-?[0-9.]+) ?C\b'}
`
	d, err := Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	device := &Device{definitions: []*Definition{d}}
	got := device.Evaluate(tree(t, `1.3.6.1.4.1.99999.1.1.1 "CPU: 67 C 152.60F"
1.3.6.1.4.1.99999.1.1.2 "no reading"
1.3.6.1.4.1.99999.1.1.3 "loc 3: -4.5C"`)).Reports
	if len(got) != 2 || got[0].Readings[0].Value != 67 || got[1].Readings[0].Value != -4.5 {
		t.Errorf("got %+v", got)
	}
	if _, err := Parse("x.yaml", []byte(strings.Replace(text, `(-?[0-9.]+) ?C\b`, "C", 1))); err == nil || !strings.Contains(err.Error(), "one group") {
		t.Errorf("a pattern without a group: %v", err)
	}
}
