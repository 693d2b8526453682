package remotewrite

import "testing"

// Of samples of which one is bad, the dead letter is of that which the receiver named.
func TestNamedIn(t *testing.T) {
	all := testSeries(3)
	var points []point
	for round := range int64(2) {
		for _, s := range all {
			points = append(points, point{series: s, t: 1000 + round})
		}
	}
	second := all[1].labels().String()
	for text, want := range map[string]int{
		"":                    0,
		"out of order sample": 0,
		"out of order sample for series " + second:                         1,
		"duplicate sample for timestamp 1001 for series " + second:         4,
		"duplicate sample for timestamp 1000 for series " + second:         1,
		"duplicate sample for timestamp 1001 for series {another=\"one\"}": 0,
	} {
		if got := namedIn(text, points); got != want {
			t.Errorf("%q means the point %d, want %d", text, got, want)
		}
	}
}
