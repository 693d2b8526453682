package snmptool

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
	"strings"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes/snmp"
)

// line formats a variable for snmpsim: OID|TAG|VALUE. The tag is the number of the ASN.1 type, with x if the value is in
// hexadecimal digits. ok is false if the format cannot express the variable.
func line(v snmp.Variable) (text string, ok bool) {
	tag, value := fmt.Sprint(int(v.Type)), ""
	switch x := v.Value.(type) {
	case []byte:
		value = string(x)
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) || strings.Trim(value, " ") != value {
			tag, value = tag+"x", hex.EncodeToString(x)
		}
	case string: // an OID or an address
		value = strings.TrimPrefix(x, ".")
		if a, err := netip.ParseAddr(value); v.Type == gosnmp.IPAddress {
			if err != nil || !a.Is4() {
				return "", false
			}
			tag, value = "64x", hex.EncodeToString(a.AsSlice())
		}
	case float32: // Opaque of net-snmp's NET-SNMP-TC: 9f 78 and the length
		tag, value = "68x", hex.EncodeToString(binary.BigEndian.AppendUint32([]byte{0x9f, 0x78, 4}, math.Float32bits(x)))
	case float64:
		tag, value = "68x", hex.EncodeToString(binary.BigEndian.AppendUint64([]byte{0x9f, 0x79, 8}, math.Float64bits(x)))
	case int, uint, uint32, uint64:
		value = fmt.Sprint(x)
	default:
		return "", false
	}
	return v.OID + "|" + tag + "|" + value, true
}
