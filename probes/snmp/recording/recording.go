// Package recording reads recorded walks of devices in snmpsim's format snmprec, one OID|TAG|VALUE per line,
// and answers SNMP requests from them on loopback as the device would, for
// hwsagent snmp test and for the inventory of a recorded device.
// The format: https://docs.lextudio.com/snmpsim/documentation/simulating-agents.
package recording

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gosnmp/gosnmp"
)

// Bounds of a recording.
const (
	maxLine = 1 << 20
	maxVars = 1_000_000
)

// Recording holds the variables of a device, sorted by OID.
type Recording struct {
	oids [][]uint32
	vars []gosnmp.SnmpPDU // names with a leading dot, as gosnmp writes them
}

// Parse parses a recording. It skips and notes lines whose tag names a variation module of snmpsim, which have no value, and
// lines that it cannot read. Of two lines with one OID the first wins.
func Parse(in io.Reader) (rec *Recording, notes []string, err error) {
	rec = &Recording{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	type entry struct {
		oid []uint32
		pdu gosnmp.SnmpPDU
	}
	var all []entry
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		name, tag, value, ok := cut(line)
		oid, bad := parse(name)
		if !ok || bad != nil {
			notes = append(notes, fmt.Sprintf("line %d is not OID|TAG|VALUE", n))
			continue
		}
		pdu := gosnmp.SnmpPDU{Name: "." + strings.TrimPrefix(name, ".")}
		if pdu.Type, pdu.Value, err = decode(tag, value); err != nil {
			notes = append(notes, fmt.Sprintf("line %d: %v", n, err))
			continue
		}
		if len(all) == maxVars {
			return nil, notes, fmt.Errorf("the recording has more than %d variables", maxVars)
		}
		all = append(all, entry{oid, pdu})
	}
	if err := lines.Err(); err != nil {
		return nil, notes, fmt.Errorf("read recording: %w", err)
	}
	slices.SortStableFunc(all, func(a, b entry) int { return slices.Compare(a.oid, b.oid) })
	all = slices.CompactFunc(all, func(a, b entry) bool { return slices.Equal(a.oid, b.oid) })
	for _, e := range all {
		rec.oids, rec.vars = append(rec.oids, e.oid), append(rec.vars, e.pdu)
	}
	return rec, notes, nil
}

func cut(line string) (name, tag, value string, ok bool) {
	name, rest, ok := strings.Cut(line, "|")
	tag, value, more := strings.Cut(rest, "|")
	return name, tag, value, ok && more
}

func parse(name string) (oid []uint32, err error) {
	for arc := range strings.SplitSeq(strings.TrimPrefix(name, "."), ".") {
		v, err := strconv.ParseUint(arc, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read OID: %w", err)
		}
		oid = append(oid, uint32(v))
	}
	if len(oid) < 2 || len(oid) > 128 {
		return nil, fmt.Errorf("an OID of %d numbers", len(oid))
	}
	return oid, nil
}

// decode decodes a value by its tag: the number of the ASN.1 type, with x for hexadecimal digits and e for
// escapes as in Python.
func decode(tag, value string) (typ gosnmp.Asn1BER, v any, err error) {
	number := strings.TrimRight(tag, "xe")
	if strings.Contains(number, ":") {
		return 0, nil, fmt.Errorf("the tag %.20q is a variation", tag)
	}
	octets := []byte(value)
	switch strings.TrimPrefix(tag, number) {
	case "x":
		if octets, err = hex.DecodeString(strings.TrimPrefix(strings.ReplaceAll(value, " ", ""), "0x")); err != nil {
			return 0, nil, fmt.Errorf("hexadecimal value: %w", err)
		}
	case "e":
		octets = unescape(value)
	}
	switch number {
	case "4":
		return gosnmp.OctetString, octets, nil
	case "68":
		return opaque(octets)
	case "5":
		return gosnmp.Null, nil, nil
	case "6":
		if _, err := parse(value); err != nil {
			return 0, nil, err
		}
		return gosnmp.ObjectIdentifier, "." + strings.TrimPrefix(value, "."), nil
	case "64":
		return address(octets)
	}
	return integer(number, strings.TrimSpace(string(octets)))
}

func integer(tag, value string) (gosnmp.Asn1BER, any, error) {
	if tag == "70" {
		u, err := strconv.ParseUint(value, 10, 64)
		return gosnmp.Counter64, u, err
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, nil, fmt.Errorf("value of the tag %.20q: %w", tag, err)
	}
	switch tag {
	case "2":
		return gosnmp.Integer, int(int32(n)), nil
	case "65":
		return gosnmp.Counter32, uint32(n), nil
	case "66", "71":
		return gosnmp.Gauge32, uint32(n), nil
	case "67":
		return gosnmp.TimeTicks, uint32(n), nil
	}
	return 0, nil, fmt.Errorf("the tag %.20q is not known", tag)
}

// address decodes four octets, or an address with dots.
func address(b []byte) (gosnmp.Asn1BER, any, error) {
	if len(b) == 4 {
		return gosnmp.IPAddress, netip.AddrFrom4([4]byte(b)).String(), nil
	}
	a, err := netip.ParseAddr(string(b))
	if err != nil || !a.Is4() {
		return 0, nil, fmt.Errorf("%.20q is no IPv4 address", b)
	}
	return gosnmp.IPAddress, a.String(), nil
}

// opaque decodes the float and double that agents wrap in Opaque: net-snmp's NET-SNMP-TC.
func opaque(b []byte) (gosnmp.Asn1BER, any, error) {
	switch {
	case len(b) == 7 && b[0] == 0x9f && b[1] == 0x78:
		return gosnmp.OpaqueFloat, math.Float32frombits(binary.BigEndian.Uint32(b[3:])), nil
	case len(b) == 11 && b[0] == 0x9f && b[1] == 0x79:
		return gosnmp.OpaqueDouble, math.Float64frombits(binary.BigEndian.Uint64(b[3:])), nil
	}
	return 0, nil, fmt.Errorf("an Opaque of %d octets that is not a float", len(b))
}

// unescape decodes \n, \r, \t, \\ and \xHH.
func unescape(s string) []byte {
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'x':
			if i+2 < len(s) {
				if v, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
					b, i = append(b, byte(v)), i+2
					continue
				}
			}
			b = append(b, '\\', 'x')
		default:
			b = append(b, s[i])
		}
	}
	return b
}

// Len returns the number of variables.
func (r *Recording) Len() int { return len(r.vars) }

// All returns the variables, sorted by OID. They must not be changed.
func (r *Recording) All() []gosnmp.SnmpPDU { return r.vars }
