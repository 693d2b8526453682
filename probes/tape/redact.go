package tape

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Kinds of data that a recording keeps only on request.
const (
	Names     = "names"     // of machines, people, places and neighbours
	Serials   = "serials"   // serial numbers, asset tags, UUIDs and World Wide Names
	MACs      = "macs"      // hardware addresses
	Addresses = "addresses" // IP addresses
)

// Kinds returns the kinds that a recording may keep.
func Kinds() []string { return []string{Names, Serials, MACs, Addresses} }

var (
	macText  = regexp.MustCompile(`\b(?:[0-9A-Fa-f]{1,2}[:-]){5}[0-9A-Fa-f]{1,2}\b|\b(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}\b`)
	ipv4Text = regexp.MustCompile(`\b(?:\d{1,3}\.){3}\d{1,3}\b`)
	ipv6Text = regexp.MustCompile(`[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}`)
	uuidText = regexp.MustCompile(`\b[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}\b`)
	// longMACText matches a hardware address with more parts than an IPv6 address can have, such as the 20 bytes of InfiniBand.
	longMACText = regexp.MustCompile(`\b(?:[0-9A-Fa-f]{2}[:-]){8,}[0-9A-Fa-f]{2}\b`)
	// serialText matches a whole value that may be a serial number: one word of capitals and digits. Value also requires
	// several of both. Most models have a hyphen, a space or fewer digits.
	serialText = regexp.MustCompile(`^[A-Z0-9]{8,24}$`)
	mailText   = regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
	// versionText matches a word for a version at the end of the text before four numbers. Up to 24 characters, a separator and
	// four more may stand between the word and the numbers.
	versionText = regexp.MustCompile(`(?i)(?:version|firmware|revision|release|bios|driver)[^\n:=,]{0,24}[:=]?[^\n:=,]{0,4}$`)
)

// Words of at least minWord bytes are replaced; shorter ones occur in other words. A word shorter than minInside, or without
// digits or letters, is replaced only where no letter or digit is adjacent.
const (
	minWord   = 4
	minInside = 8
)

// nothings are placeholders of vendors and programs for a missing name or number.
var nothings = []string{"none", "null", "unknown", "n/a", "[n/a]", "not specified", "not available", "not applicable", "default string", "system serial number",
	"to be filled by o.e.m.", "0123456789", "123456789", "empty", "invalid", "localhost", "true", "false", "enabled", "disabled"}

// Redactor replaces data that identifies the owner of the hardware. A text has the same stand-in throughout a recording, and a
// different one in the next. It is for one goroutine.
type Redactor struct {
	keep    []string
	key     []byte
	words   []word // longest first
	known   map[string]bool
	replace *regexp.Regexp // matches any of the words, ignoring case; nil: no words, or not compiled yet
	count   map[string]int
	left    int
}

type word struct {
	text, kind string
	account    bool // see [Redactor.LearnAccount]
}

// NewRedactor returns a redactor that keeps these kinds. An unknown kind is an error.
func NewRedactor(keep []string) (*Redactor, error) {
	for _, k := range keep {
		if !slices.Contains(Kinds(), k) {
			return nil, fmt.Errorf("keep %q: the kinds are %s", k, strings.Join(Kinds(), ", "))
		}
	}
	return &Redactor{keep: keep, key: []byte(rand.Text()), known: map[string]bool{}, count: map[string]int{}}, nil
}

// Keeps reports whether data of that kind is kept.
func (r *Redactor) Keeps(kind string) bool { return slices.Contains(r.keep, kind) }

// Learn makes the redactor replace a text wherever it occurs, ignoring case, unless its kind is kept. It ignores texts of fewer
// than four characters and placeholders for missing values.
func (r *Redactor) Learn(kind, text string) {
	lower := strings.ToLower(strings.TrimSpace(text))
	if r.Keeps(kind) || slices.Contains(nothings, lower) || strings.Trim(lower, "0 .:-") == "" {
		return
	}
	r.LearnSecret(kind, text)
}

// LearnSecret is Learn for a text that must be replaced even if its kind is kept. It counts as of that kind.
func (r *Redactor) LearnSecret(kind, text string) {
	r.learn(word{text: text, kind: kind})
}

// LearnAccount is LearnSecret for the name of an account. The name stays in paths: an account may be named like a part of
// a path that every service of its kind has, and a recording without that part would be unusable.
func (r *Redactor) LearnAccount(name string) { r.learn(word{text: name, kind: Names, account: true}) }

func (r *Redactor) learn(w word) {
	if w.text = strings.TrimSpace(w.text); len(w.text) < minWord || r.known[strings.ToLower(w.text)] {
		return
	}
	r.known[strings.ToLower(w.text)] = true
	r.words = append(r.words, w)
	r.replace = nil
}

// LeaveOut counts a piece of data that is omitted from the recording.
func (r *Redactor) LeaveOut() { r.left++ }

// LeftOut returns the number of calls of LeaveOut.
func (r *Redactor) LeftOut() int { return r.left }

// Replaced returns the number of replaced texts, by kind.
func (r *Redactor) Replaced() map[string]int { return r.count }

// Tape replaces texts in questions and answers. It leaves binary answers alone: their probe redacts them.
func (r *Redactor) Tape(t *Tape) {
	for i := range t.Exchanges {
		e := &t.Exchanges[i]
		e.Ask, e.Status = r.Text(e.Ask), r.Text(e.Status)
		if text := string(e.Answer); e.Status != Bytes && (t.Type != "ipmi" || isText(text)) { // their probe redacts binary answers
			e.Answer = []byte(r.Text(text))
		}
	}
}

// Value is Text, but also replaces a whole value that looks like a serial number.
func (r *Redactor) Value(s string) string {
	s = r.Text(s)
	if !r.Keeps(Serials) && serialText.MatchString(s) && capitals(s) >= 2 && len(s)-capitals(s) >= 4 {
		s = string(r.Shape(Serials, []byte(s)))
	}
	return s
}

// Text replaces learned words, and texts that look like an address, a UUID or a mail address.
func (r *Redactor) Text(s string) string {
	s = r.Words(s)
	if !r.Keeps(Serials) {
		s = uuidText.ReplaceAllStringFunc(s, func(m string) string { return string(r.Shape(Serials, []byte(m))) })
	}
	s = r.addresses(s)
	if !r.Keeps(Names) {
		s = mailText.ReplaceAllStringFunc(s, func(m string) string { return string(r.Shape(Names, []byte(m))) })
	}
	return s
}

// addresses replaces hardware and IP addresses. Long hardware addresses come first, as parts of them look like IPv6 addresses.
func (r *Redactor) addresses(s string) string {
	var out strings.Builder
	at := 0
	for _, found := range longMACText.FindAllStringIndex(s, -1) {
		out.WriteString(r.shortAddresses(s[at:found[0]]))
		if at = found[1]; r.Keeps(MACs) {
			out.WriteString(s[found[0]:at])
		} else {
			out.Write(r.Shape(MACs, []byte(s[found[0]:at])))
		}
	}
	out.WriteString(r.shortAddresses(s[at:]))
	return out.String()
}

func (r *Redactor) shortAddresses(s string) string {
	if !r.Keeps(MACs) {
		s = macText.ReplaceAllStringFunc(s, func(m string) string { return string(r.Shape(MACs, []byte(m))) })
	}
	if !r.Keeps(Addresses) {
		s = r.addresses4(s)
		s = ipv6Text.ReplaceAllStringFunc(s, r.addressText)
	}
	return s
}

// Words replaces learned words.
func (r *Redactor) Words(s string) string {
	if len(r.words) == 0 {
		return s
	}
	if r.replace == nil {
		slices.SortStableFunc(r.words, func(a, b word) int { return cmp.Compare(len(b.text), len(a.text)) })
		quoted := make([]string, len(r.words))
		for i, w := range r.words {
			quoted[i] = regexp.QuoteMeta(w.text)
		}
		r.replace = regexp.MustCompile("(?i:" + strings.Join(quoted, "|") + ")")
	}
	var out strings.Builder
	at := 0
	for _, found := range r.replace.FindAllStringIndex(s, -1) {
		from, to := found[0], found[1]
		m := s[from:to]
		if (len(m) < minInside || !mixed(m)) && (from > 0 && alphanumeric(s[from-1]) || to < len(s) && alphanumeric(s[to])) {
			continue
		}
		w := r.wordOf(m)
		if w.account && inPath(s, from) {
			continue
		}
		out.WriteString(s[at:from])
		out.Write(r.Shape(w.kind, []byte(m)))
		at = to
	}
	out.WriteString(s[at:])
	return out.String()
}

// mixed reports whether a text has both letters and digits.
func mixed(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.Trim(s, "0123456789") != ""
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (r *Redactor) wordOf(text string) word {
	for _, w := range r.words {
		if strings.EqualFold(w.text, text) {
			return w
		}
	}
	return word{text: text, kind: Names}
}

// inPath reports whether the text at an offset of s is part of an absolute path, including one whose slashes JSON escapes.
func inPath(s string, at int) bool {
	begin := strings.LastIndexAny(s[:at], " \t\r\n\"'<>") + 1
	return strings.HasPrefix(strings.TrimPrefix(s[begin:at], `\`), "/")
}

// MAC returns a stand-in for the hardware address b, marked as locally administered (IEEE 802).
func (r *Redactor) MAC(b []byte) []byte {
	if len(b) == 0 || r.Keeps(MACs) {
		return b
	}
	r.count[MACs]++
	return append([]byte{2}, r.hash(b)[:len(b)-1]...)
}

// addresses4 replaces IPv4 addresses. Four numbers of which the first is below 10 are more often a version or a part of an object
// identifier: they stay if a word for a version precedes them, or if more numbers adjoin.
func (r *Redactor) addresses4(s string) string {
	var out strings.Builder
	at := 0
	for _, found := range ipv4Text.FindAllStringIndex(s, -1) {
		from, to := found[0], found[1]
		if s[from+1] == '.' && (numbered(s, from, to) || versionText.MatchString(s[max(at, from-64):from])) {
			continue
		}
		out.WriteString(s[at:from])
		out.WriteString(r.addressText(s[from:to]))
		at = to
	}
	out.WriteString(s[at:])
	return out.String()
}

// numbered reports whether more numbers adjoin s[from:to].
func numbered(s string, from, to int) bool {
	return from > 0 && s[from-1] == '.' || to+1 < len(s) && s[to] == '.' && s[to+1] >= '0' && s[to+1] <= '9'
}

// addressText replaces a text if it is an IP address.
func (r *Redactor) addressText(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil || a.IsUnspecified() || a.IsLoopback() {
		return s
	}
	return r.Address(s)
}

// Address returns a stand-in for s from the ranges for documentation (RFC 5737, 3849).
func (r *Redactor) Address(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil || a.IsUnspecified() || a.IsLoopback() || a.Is4() && a.As4()[0] == 255 || r.Keeps(Addresses) {
		return s
	}
	r.count[Addresses]++
	h := r.hash(a.AsSlice())
	if a.Is4() {
		return fmt.Sprintf("192.0.2.%d", 1+h[0]%254)
	}
	return fmt.Sprintf("2001:db8::%x%02x", h[0], h[1])
}

// Shape replaces letters by letters and digits by digits, so that the text can still be parsed; 0 stays, so that a number
// keeps its length. The stand-in follows the case of b, but otherwise does not depend on it. It differs from b if b has any
// letter or any digit but 0: a short text would otherwise stay by chance, such as one in 2,916 with two letters up to F and two digits.
func (r *Redactor) Shape(kind string, b []byte) []byte {
	r.count[kind]++
	h := r.hash(bytes.ToLower(b))
	out := standIn(b, h)
	for bytes.EqualFold(out, b) && bytes.ContainsFunc(b, replaceable) {
		h = r.hash(h)
		out = standIn(b, h)
	}
	return out
}

// replaceable reports whether a stand-in may have another character in the place of c.
func replaceable(c rune) bool {
	return c >= '1' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// standIn returns a text of the shape of b that the random bytes h determine.
func standIn(b, h []byte) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		n := h[i%len(h)] + byte(i/len(h))
		switch {
		case c >= '1' && c <= '9':
			out[i] = '1' + n%9
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

func (r *Redactor) hash(b []byte) []byte {
	h := hmac.New(sha256.New, r.key)
	h.Write(b)
	return h.Sum(nil)
}

func capitals(s string) (n int) {
	for _, c := range s {
		if c >= 'A' && c <= 'Z' {
			n++
		}
	}
	return n
}
