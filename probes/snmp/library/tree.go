package library

import (
	"slices"
	"strconv"
	"strings"
)

// Variable is one object that a device returned.
type Variable struct {
	OID     OID
	Number  float64 // if Numeric
	Numeric bool
	Text    string // if not Numeric
	Octets  []byte // of an OCTET STRING, as the device sent them
}

// Tree holds the variables that a device returned in one round.
type Tree struct{ vars []Variable }

// NewTree sorts and keeps vars. Of several with one OID the last wins.
func NewTree(vars []Variable) *Tree {
	slices.SortStableFunc(vars, func(a, b Variable) int { return slices.Compare(a.OID, b.OID) })
	kept := vars[:0]
	for _, v := range vars {
		if n := len(kept); n > 0 && slices.Equal(kept[n-1].OID, v.OID) {
			kept[n-1] = v
			continue
		}
		kept = append(kept, v)
	}
	return &Tree{vars: kept}
}

func (t *Tree) find(o OID) (int, bool) {
	return slices.BinarySearchFunc(t.vars, o, func(v Variable, o OID) int { return slices.Compare(v.OID, o) })
}

// get returns the variable at o, nil if the device lacks it.
func (t *Tree) get(o OID) *Variable {
	if i, ok := t.find(o); ok {
		return &t.vars[i]
	}
	return nil
}

// below returns the variables below o.
func (t *Tree) below(o OID) []Variable {
	from, _ := t.find(o)
	to := from
	for to < len(t.vars) && t.vars[to].OID.within(o) {
		to++
	}
	return t.vars[from:to]
}

// number returns the value as a number. Agents without decimals send texts such as "23.5 C", and some send
// "N/A": ok is false then.
func (v *Variable) number() (n float64, ok bool) {
	if v.Numeric {
		return v.Number, true
	}
	return numberIn(v.Text)
}

func numberIn(text string) (n float64, ok bool) {
	s := strings.TrimLeft(strings.TrimSpace(text), `"'+`)
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.' || s[end] == '-' && end == 0) {
		end++
	}
	// The rest is a unit. A second number means that the text is a date, a version or an address.
	if rest := strings.TrimLeft(s[end:], " "); strings.ContainsAny(rest, "0123456789:") {
		return 0, false
	}
	n, err := strconv.ParseFloat(s[:end], 64)
	return n, err == nil
}

// text returns the value as a text, without surrounding blanks.
func (v *Variable) text() string {
	if v.Numeric {
		return strconv.FormatFloat(v.Number, 'f', -1, 64)
	}
	return strings.Trim(v.Text, " \t\r\n\x00")
}
