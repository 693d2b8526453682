package client

import (
	"net/http"
	"strings"
	"testing"
)

// Whatever the headers say, it is read as a number of samples or as missing.
func TestParseWritten(t *testing.T) {
	for _, tc := range []struct {
		values []string
		want   Written
	}{
		{nil, Written{}},
		{[]string{""}, Written{}},
		{[]string{"0"}, Written{Known: true}},
		{[]string{"12"}, Written{Known: true, Samples: 12}},
		{[]string{"12", "13"}, Written{Known: true, Samples: 12}},
		{[]string{"012"}, Written{Known: true, Samples: 12}},
		{[]string{"9223372036854775807"}, Written{Known: true, Samples: 1<<63 - 1}},
		{[]string{"9223372036854775808"}, Written{}},
		{[]string{strings.Repeat("9", 1<<16)}, Written{}},
		{[]string{"-1"}, Written{}},
		{[]string{"+1"}, Written{}},
		{[]string{"1.0"}, Written{}},
		{[]string{"1e3"}, Written{}},
		{[]string{"0x10"}, Written{}},
		{[]string{"1_000"}, Written{}},
		{[]string{" 12"}, Written{}},
		{[]string{"12, 13"}, Written{}},
		{[]string{"all"}, Written{}},
	} {
		h := http.Header{"X-Prometheus-Remote-Write-Samples-Written": tc.values}
		if got := parseWritten(h); got != tc.want {
			t.Errorf("%.40q: %+v, want %+v", tc.values, got, tc.want)
		}
	}
	w := Written{Known: true, Samples: 1<<63 - 1, Histograms: 1<<63 - 1}
	if n := w.Stored(7); n != 7 {
		t.Errorf("of 7 samples %d were written", n)
	}
}
