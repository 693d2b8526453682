package snmptool

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/gosnmp/gosnmp"

	"hwsagent/probes/snmp"
)

// Kinds of what a recording does not keep unless it is asked to.
const (
	KeepNames     = "names"     // the device's name, contact and place, aliases, names of neighbours
	KeepSerials   = "serials"   // serial numbers and asset tags
	KeepMACs      = "macs"      // hardware addresses
	KeepAddresses = "addresses" // IP addresses, and the tables that are indexed by addresses
)

// Kinds are what a recording may keep.
func Kinds() []string { return []string{KeepNames, KeepSerials, KeepMACs, KeepAddresses} }

// secretTrees are left out of every recording: they hold communities, users and their keys' changes,
// who is allowed what, and where notifications go (RFC 3584, 3414, 3415, 3413).
var secretTrees = []string{"1.3.6.1.6.3.18", "1.3.6.1.6.3.15.1.2", "1.3.6.1.6.3.16", "1.3.6.1.6.3.12", "1.3.6.1.6.3.13"}

// addressTrees have addresses in their indexes: those of IP, of ARP and neighbours, routes, TCP and UDP (RFC 4293,
// 4292, 4022, 4113, 1213), of bridges (RFC 4188, 4363) and LLDP's management addresses.
var addressTrees = []string{
	"1.3.6.1.2.1.3", "1.3.6.1.2.1.4.20", "1.3.6.1.2.1.4.21", "1.3.6.1.2.1.4.22", "1.3.6.1.2.1.4.24", "1.3.6.1.2.1.4.32", "1.3.6.1.2.1.4.34", "1.3.6.1.2.1.4.35",
	"1.3.6.1.2.1.4.37", "1.3.6.1.2.1.6.13", "1.3.6.1.2.1.6.19", "1.3.6.1.2.1.6.20", "1.3.6.1.2.1.7.5", "1.3.6.1.2.1.7.7", "1.3.6.1.2.1.14", "1.3.6.1.2.1.15",
	"1.3.6.1.2.1.17.4.3", "1.3.6.1.2.1.17.7.1.2", "1.3.6.1.2.1.55", "1.0.8802.1.1.2.1.3.8", "1.0.8802.1.1.2.1.4.2", "1.3.6.1.4.1.9.9.23.1.2.2",
}

// programTrees hold what runs on a computer and with which parameters (RFC 2790): they are no hardware, and
// parameters may be secrets.
var programTrees = []string{"1.3.6.1.2.1.25.4", "1.3.6.1.2.1.25.5", "1.3.6.1.2.1.25.6"}

// nameTrees are objects with names that people gave: sysContact, sysName, sysLocation, ifAlias, aliases of
// ENTITY-MIB, and the neighbours of LLDP and CDP.
var nameTrees = []string{
	"1.3.6.1.2.1.1.4", "1.3.6.1.2.1.1.5", "1.3.6.1.2.1.1.6", "1.3.6.1.2.1.31.1.1.1.18", "1.3.6.1.2.1.47.1.1.1.1.14",
	"1.0.8802.1.1.2.1.3.3", "1.0.8802.1.1.2.1.4.1.1", "1.3.6.1.4.1.9.9.23.1.2.1", "1.3.6.1.4.1.9.2.1.3",
}

// serialTrees are serial numbers and asset tags: entPhysicalSerialNum, entPhysicalAssetID, prtGeneralSerialNumber.
var serialTrees = []string{"1.3.6.1.2.1.47.1.1.1.1.11", "1.3.6.1.2.1.47.1.1.1.1.15", "1.3.6.1.2.1.43.5.1.1.17"}

var (
	macText  = regexp.MustCompile(`\b(?:[0-9A-Fa-f]{1,2}[:-]){5}[0-9A-Fa-f]{1,2}\b|\b(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}\b`)
	ipv4Text = regexp.MustCompile(`\b(?:\d{1,3}\.){3}\d{1,3}\b`)
	ipv6Text = regexp.MustCompile(`[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}`)
	// serialText is a whole value that looks like a serial number: one word of capitals and digits, with
	// several of both. A model has a hyphen, a space or fewer digits more often than not.
	serialText = regexp.MustCompile(`^[A-Z0-9]{8,24}$`)
	mailText   = regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
)

// redactor replaces what tells whose device it is. The same text gets the same stand-in within a recording, and
// another in the next.
type redactor struct {
	keep  []string
	key   []byte
	words []string // names, serial numbers and the login, wherever they occur; longest first
	count map[string]int
}

func newRedactor(keep []string) *redactor {
	return &redactor{keep: keep, key: []byte(rand.Text()), count: map[string]int{}}
}

func (r *redactor) keeps(kind string) bool { return slices.Contains(r.keep, kind) }

// learn collects words that are replaced wherever they occur.
func (r *redactor) learn(vars []snmp.Variable, secrets ...string) {
	add := func(word string) {
		if word = strings.TrimSpace(word); len(word) >= 4 && !slices.Contains(r.words, word) {
			r.words = append(r.words, word)
		}
	}
	for _, s := range secrets {
		if s != "public" {
			add(s)
		}
	}
	for _, v := range vars {
		b, ok := v.Value.([]byte)
		named := !r.keeps(KeepNames) && within(v.OID, nameTrees[:3])
		if ok && (named || !r.keeps(KeepSerials) && within(v.OID, serialTrees)) {
			add(string(b))
			if name, _, found := strings.Cut(string(b), "."); found && named { // host of host.example.net
				add(name)
			}
		}
	}
	slices.SortFunc(r.words, func(a, b string) int { return len(b) - len(a) })
}

// left reports whether the object is left out of the recording.
func (r *redactor) left(oid string) bool {
	out := within(oid, secretTrees) || within(oid, programTrees) || !r.keeps(KeepAddresses) && within(oid, addressTrees)
	if out {
		r.count["left out"]++
	}
	return out
}

// value is v as it may be kept.
func (r *redactor) value(v snmp.Variable) snmp.Variable {
	switch x := v.Value.(type) {
	case []byte:
		v.Value = r.octets(v.OID, x)
	case string:
		if v.Type == gosnmp.IPAddress && !r.keeps(KeepAddresses) {
			v.Value = r.address(x)
		}
	}
	return v
}

func (r *redactor) octets(oid string, b []byte) []byte {
	switch {
	case len(b) == 0:
		return b
	case !r.keeps(KeepNames) && within(oid, nameTrees):
		return r.shape(KeepNames, b)
	case !r.keeps(KeepSerials) && within(oid, serialTrees):
		return r.shape(KeepSerials, b)
	case !isText(b):
		return r.binary(b)
	}
	return []byte(r.text(string(b)))
}

// binary replaces a hardware address; other octets stay but for texts in them.
func (r *redactor) binary(b []byte) []byte {
	if (len(b) == 6 || len(b) == 8) && !r.keeps(KeepMACs) {
		r.count[KeepMACs]++
		return append([]byte{2}, r.hash(b)[:len(b)-1]...) // 02: administered locally (IEEE 802)
	}
	text := string(b)
	for _, w := range r.words {
		text = strings.ReplaceAll(text, w, string(r.shape(KeepNames, []byte(w))))
	}
	return []byte(text)
}

func (r *redactor) text(s string) string {
	for _, w := range r.words {
		if at := strings.Index(strings.ToLower(s), strings.ToLower(w)); at >= 0 && len(strings.ToLower(s)) == len(s) {
			s = s[:at] + string(r.shape(KeepNames, []byte(s[at:at+len(w)]))) + r.text(s[at+len(w):])
		}
	}
	if !r.keeps(KeepMACs) {
		s = macText.ReplaceAllStringFunc(s, func(m string) string { return string(r.shape(KeepMACs, []byte(m))) })
	}
	if !r.keeps(KeepAddresses) {
		s = ipv4Text.ReplaceAllStringFunc(s, r.addressText)
		s = ipv6Text.ReplaceAllStringFunc(s, r.addressText)
	}
	if !r.keeps(KeepNames) {
		s = mailText.ReplaceAllStringFunc(s, func(m string) string { return string(r.shape(KeepNames, []byte(m))) })
	}
	if !r.keeps(KeepSerials) && serialText.MatchString(s) && letters(s) >= 2 && len(s)-letters(s) >= 4 {
		s = string(r.shape(KeepSerials, []byte(s)))
	}
	return s
}

// addressText replaces a text that is an IP address: four numbers may be a version.
func (r *redactor) addressText(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil || a.IsUnspecified() || a.IsLoopback() || a.Is4() && a.As4()[0] < 10 { // 3.2.1.0 is a version
		return s
	}
	return r.address(s)
}

// address is an address of the ranges for documentation (RFC 5737, 3849).
func (r *redactor) address(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil || a.IsUnspecified() || a.IsLoopback() || a.Is4() && a.As4()[0] == 255 {
		return s
	}
	r.count[KeepAddresses]++
	h := r.hash(a.AsSlice())
	if a.Is4() {
		return fmt.Sprintf("192.0.2.%d", 1+h[0]%254)
	}
	return fmt.Sprintf("2001:db8::%x%02x", h[0], h[1])
}

// shape replaces letters by letters and digits by digits, so that what reads the text still can.
func (r *redactor) shape(kind string, b []byte) []byte {
	r.count[kind]++
	h := r.hash(b)
	out := make([]byte, len(b))
	for i, c := range b {
		n := h[i%len(h)] + byte(i/len(h))
		switch {
		case c >= '0' && c <= '9':
			out[i] = '0' + n%10
		case c >= 'a' && c <= 'f':
			out[i] = 'a' + n%6
		case c >= 'A' && c <= 'F':
			out[i] = 'A' + n%6
		case c >= 'a' && c <= 'z':
			out[i] = 'a' + n%26
		case c >= 'A' && c <= 'Z':
			out[i] = 'A' + n%26
		case c < 0x80:
			out[i] = c
		default:
			out[i] = 'x'
		}
	}
	return out
}

func (r *redactor) hash(b []byte) []byte {
	h := hmac.New(sha256.New, r.key)
	h.Write(b)
	return h.Sum(nil)
}

// within reports whether the object is one of the trees or below it.
func within(oid string, trees []string) bool {
	return slices.ContainsFunc(trees, func(t string) bool { return oid == t || strings.HasPrefix(oid, t+".") })
}

func isText(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return (c < ' ' || c > '~') && c != '\n' && c != '\r' && c != '\t' })
}

func letters(s string) (n int) {
	for _, c := range s {
		if c >= 'A' && c <= 'Z' {
			n++
		}
	}
	return n
}
