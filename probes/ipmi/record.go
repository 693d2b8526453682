package ipmi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Types of sensor data records (section 43).
const (
	fullSensor    = 0x01
	compactSensor = 0x02
	recordHeader  = 5 // bytes: ID, version, type, length of the rest
)

// sensor is one sensor as its record describes it.
type sensor struct {
	record         uint16 // the record's ID
	owner, lun     byte
	number         byte
	entity         byte
	instance       byte
	kind           byte // sensor type (table 42-3)
	reading        byte // event/reading type (table 42-1): 1 threshold, 6Fh specific to the sensor type, …
	name           string
	analog         bool
	format         byte // 0 unsigned, 1 ones' complement, 2 twos' complement
	percent        bool
	unit           byte // base unit (table 43-15)
	combined       bool // has a modifier unit or a rate, so the unit is not one of the known ones
	linear         byte // linearization (section 43.1, byte 24)
	factors        factors
	readable       byte // readable limits, bits as in limitTypes
	limitAccess    byte // 1, 2: readable
	limits         [6]byte
	limitsAreKnown bool
}

// factors convert a raw value: (M × raw + B × 10^bExp) × 10^rExp (section 36.3).
type factors struct {
	m, b       int
	bExp, rExp int
}

var errRecord = errors.New("the record is shorter than its type needs")

// parseRecord parses a record: one sensor, several that share the record, or none if its type is not supported.
func parseRecord(r []byte) ([]sensor, error) {
	if len(r) < recordHeader || len(r) < recordHeader+int(r[4]) {
		return nil, errRecord
	}
	r = r[:recordHeader+int(r[4])]
	switch r[3] {
	case fullSensor:
		s, err := parseFull(r)
		return []sensor{s}, err
	case compactSensor:
		return parseCompact(r)
	}
	return nil, nil
}

// combined reports whether a sensor's unit has a rate or a modifier that its metric does not express (IPMI 2.0, table 43-1, Sensor Units 1: rate
// in bits 5:3, modifier in bits 2:1). Some controllers write the minute of rotations per minute once more as the rate.
func combined(units, base byte) bool {
	const perMinute = 4
	rate, modifier := units>>3&7, units>>1&3
	return modifier != 0 || rate != 0 && !(base == unitRPM && rate == perMinute)
}

// parseCommon parses the common beginning of full and compact records.
func parseCommon(r []byte) sensor {
	return sensor{
		record: binary.LittleEndian.Uint16(r), owner: r[5], lun: r[6] & 3, number: r[7], entity: r[8], instance: r[9],
		limitAccess: r[11] >> 2 & 3, kind: r[12], reading: r[13] & 0x7f, percent: r[20]&1 != 0, unit: r[21],
		combined: combined(r[20], r[21]),
	}
}

func parseFull(r []byte) (sensor, error) {
	if len(r) < 48 {
		return sensor{}, errRecord
	}
	s := parseCommon(r)
	s.format, s.linear, s.readable = r[20]>>6, r[23]&0x7f, r[18]&0x3f
	s.analog = s.format != 3
	s.factors = parseFactors(r[24:30])
	s.limits = [6]byte{r[41], r[40], r[39], r[38], r[37], r[36]}
	var err error
	s.name, err = parseName(r, 47)
	return s, err
}

// parseFactors parses M, tolerance, B, accuracy, exponents: six bytes of a full record, and of Get Sensor Reading Factors.
func parseFactors(b []byte) factors {
	return factors{
		m: signed(int(b[0])|int(b[1]&0xc0)<<2, 10), b: signed(int(b[2])|int(b[3]&0xc0)<<2, 10),
		rExp: signed(int(b[5]>>4), 4), bExp: signed(int(b[5]&0xf), 4),
	}
}

// signed decodes a number of that many bits in twos' complement.
func signed(v, bits int) int {
	if v >= 1<<(bits-1) {
		return v - 1<<bits
	}
	return v
}

func parseCompact(r []byte) ([]sensor, error) {
	if len(r) < 32 {
		return nil, errRecord
	}
	first := parseCommon(r)
	name, err := parseName(r, 31)
	if err != nil {
		return nil, err
	}
	n := max(1, int(r[23]&0xf))
	all := make([]sensor, 0, n)
	for i := range n {
		s := first
		s.number += byte(i)
		if r[24]&0x80 != 0 { // each has its own entity instance
			s.instance += byte(i)
		}
		s.name = name
		if n > 1 {
			s.name += modifier(r[23]>>4&3, int(r[24]&0x7f)+i)
		}
		all = append(all, s)
	}
	return all, nil
}

// modifier returns the suffix for the name of one of several sensors that share a record (section 43.2, byte 24).
func modifier(kind byte, n int) string {
	if kind == 1 && n < 26*26 {
		if n < 26 {
			return string(rune('A' + n))
		}
		return string(rune('A'+n/26-1)) + string(rune('A'+n%26))
	}
	return fmt.Sprint(n)
}

// parseName parses a name with its type/length byte (section 43.15). It accepts a truncated name: some firmware counts
// differently.
func parseName(r []byte, at int) (string, error) {
	if at >= len(r) {
		return "", errRecord
	}
	return parseText(r[at], r[at+1:]), nil
}

// parseText decodes the text of a type/length byte. The length is in characters where several share a byte.
func parseText(typeLength byte, b []byte) string {
	n, text := int(typeLength&0x1f), strings.Builder{}
	switch typeLength >> 6 {
	case 1: // BCD plus
		for i := 0; i < n && i/2 < len(b); i++ {
			text.WriteByte("0123456789 -.:,_"[b[i/2]>>(4*(i%2))&0xf])
		}
	case 2: // 6-bit ASCII, packed
		for i := 0; i < n && (i*6+5)/8 < len(b); i++ {
			bit := i * 6
			v := uint16(b[bit/8]) >> (bit % 8)
			if bit%8 > 2 {
				v |= uint16(b[bit/8+1]) << (8 - bit%8)
			}
			text.WriteByte(' ' + byte(v&0x3f))
		}
	default:
		for _, c := range b[:min(n, len(b))] { // ASCII and Latin 1
			if c != 0 {
				text.WriteRune(rune(c))
			}
		}
	}
	return strings.TrimSpace(text.String())
}

// value converts a raw value to the sensor's unit; false if the record does not allow it (linearization, section 43.1).
func (s *sensor) value(raw byte) (float64, bool) {
	x := int(raw)
	switch s.format {
	case 1:
		if x = signed(x, 8); x < 0 {
			x++
		}
	case 2:
		x = signed(x, 8)
	}
	f := s.factors
	// The exponents are combined, so that 12.915 does not become 12.915000000000001.
	low := min(f.rExp, f.bExp+f.rExp)
	y := (float64(f.m*x)*math.Pow10(f.rExp-low) + float64(f.b)*math.Pow10(f.bExp+f.rExp-low))
	if low < 0 {
		y /= math.Pow10(-low)
	} else {
		y *= math.Pow10(low)
	}
	if s.linear < byte(len(linearizations)) {
		y = linearizations[s.linear](y)
	} else if s.linear < nonLinear {
		return 0, false
	}
	return y, !math.IsNaN(y) && !math.IsInf(y, 0)
}

// nonLinear and above: the factors hold for one raw value only, and must be requested (section 36.2).
const nonLinear = 0x70

var linearizations = [...]func(float64) float64{
	func(x float64) float64 { return x }, math.Log, math.Log10, math.Log2, math.Exp, func(x float64) float64 { return math.Pow(10, x) }, math.Exp2,
	func(x float64) float64 { return 1 / x }, func(x float64) float64 { return x * x }, func(x float64) float64 { return x * x * x }, math.Sqrt, math.Cbrt,
}
