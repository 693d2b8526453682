package snmp

import "testing"

// A DateAndTime is read with its zone; one whose zone no clock on earth has, as of devices that leave rubbish in its octets, is none.
func TestDateAndTimeZone(t *testing.T) {
	const noon = "\x07\xea\x02\x1c\x0c\x00\x00\x00" // 2026-02-28 12:00:00
	for zone, want := range map[string]float64{
		"": 1772280000, "+\x00\x00": 1772280000, "+\x02\x1e": 1772271000, "-\x05\x00": 1772298000, "+\x0e\x00": 1772229600,
		"+\x0f\x00": 0, "-\xf3\x10": 0, "+\x01\x3c": 0, " \x00\x00": 0,
	} {
		if got, ok := dateAndTime([]byte(noon+zone), false); ok != (want != 0) || ok && got != want {
			t.Errorf("zone %q: %v %v, want %v", zone, got, ok, want)
		}
	}
}

// A date with a month or a day of 0 is none, and snmp_exporter's number in a module of snmp.yml.
func TestDateAndTimeOfZeros(t *testing.T) {
	for text, want := range map[string]float64{"\x00\x00\x01\x00\x00\x00\x00\x00-\x06\x00": -62167284000, "\x00\x00\x00\x00\x00\x00\x00\x00": -62169984000} {
		if got, ok := dateAndTime([]byte(text), true); !ok || got != want {
			t.Errorf("%q: %v %v, want %v", text, got, ok, want)
		}
		if got, ok := dateAndTime([]byte(text), false); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}
