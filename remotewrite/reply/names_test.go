package reply

import "testing"

func TestNames(t *testing.T) {
	const series = `{__name__="up", job="a"}`
	for text, want := range map[string]int{
		`out of bounds: {__name__="up", job="a"} at 1700000000123`: 0,
		`label value too long: {__name__="up", job="a"}`:           1,
		`label value too long: {__name__="up", job="b"}`:           2,
		`out of bounds at 1700000000123`:                           2,
		``:                                                         2,
	} {
		if got := Names(text, series, 1700000000123); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
