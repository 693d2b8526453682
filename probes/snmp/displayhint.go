package snmp

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// maxHinted bounds the text that a hint produces from a value, in bytes. A hint may repeat for
// every byte, and a value may have 64 KiB.
const maxHinted = 64 << 10

// hintSpec is one octet-format specification of a DISPLAY-HINT: RFC 2579 section 3.1.
type hintSpec struct {
	repeat     bool // "*": the first octet is the number of applications
	length     int  // octets of one application
	format     byte // d, x, o, a or t
	separator  byte // after each application, 0 for none
	terminator byte // after the last repetition, 0 for none
}

// parseHint parses a hint; ok is false if it is not a list of specifications.
func parseHint(hint string) (specs []hintSpec, ok bool) {
	for hint != "" {
		var s hintSpec
		if hint[0] == '*' {
			s.repeat, hint = true, hint[1:]
		}
		digits := len(hint) - len(strings.TrimLeft(hint, "0123456789"))
		if digits == 0 || digits > 5 || digits == len(hint) {
			return nil, false
		}
		s.length, _ = strconv.Atoi(hint[:digits])
		s.format, hint = hint[digits], hint[digits+1:]
		if !strings.ContainsRune("dxoat", rune(s.format)) {
			return nil, false
		}
		s.separator, hint = hintChar(hint)
		if s.repeat {
			s.terminator, hint = hintChar(hint)
		}
		specs = append(specs, s)
	}
	return specs, len(specs) > 0
}

// hintChar takes a separator or terminator, which is any character that does not begin a
// specification.
func hintChar(hint string) (c byte, rest string) {
	if hint == "" || hint[0] == '*' || hint[0] >= '0' && hint[0] <= '9' {
		return 0, hint
	}
	return hint[0], hint[1:]
}

// applyHint formats a value by its hint. ok is false if the hint cannot be applied; the value
// is then formatted by its type.
func applyHint(hint string, value []byte) (text string, ok bool) {
	specs, ok := parseHint(hint)
	if !ok || len(value) == 0 {
		return "", false
	}
	var b strings.Builder
	for i := 0; len(value) > 0; i++ {
		s := specs[min(i, len(specs)-1)] // the last one repeats
		if s.length == 0 && !s.repeat && i >= len(specs)-1 {
			return "", false // it would consume nothing, forever
		}
		if value, ok = s.apply(&b, value); !ok || b.Len() > maxHinted {
			return "", false
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD"), true
}

// apply formats the part of value that one specification consumes.
func (s hintSpec) apply(b *strings.Builder, value []byte) (rest []byte, ok bool) {
	times := 1
	if s.repeat {
		times, value = int(value[0]), value[1:]
	}
	for i := 0; i < times && len(value) > 0; i++ {
		n := min(s.length, len(value))
		if !s.write(b, value[:n]) {
			return nil, false
		}
		value = value[n:]
		if s.separator != 0 && len(value) > 0 && (s.terminator == 0 || i != times-1) {
			b.WriteByte(s.separator)
		}
	}
	if s.terminator != 0 && len(value) > 0 {
		b.WriteByte(s.terminator)
	}
	return value, true
}

func (s hintSpec) write(b *strings.Builder, octets []byte) bool {
	switch s.format {
	case 'a', 't':
		b.Write(octets)
		return true
	case 'x':
		b.WriteString(strings.ToUpper(hex.EncodeToString(octets)))
		return true
	}
	if len(octets) > 8 {
		return false
	}
	var n uint64
	for _, o := range octets {
		n = n<<8 | uint64(o)
	}
	base := 10
	if s.format == 'o' {
		base = 8
	}
	b.WriteString(strconv.FormatUint(n, base))
	return true
}
