package web

import (
	"bytes"
	"fmt"
	"strings"
)

// markup is HTML that stands in this program. What a receiver or a device has said cannot become markup by
// mistake: only constants are of this type without a conversion, and there is no conversion in this package.
type markup string

// page is HTML that is being written. Everything but markup goes through one of its methods, each of which
// makes a text harmless at the place that it is for.
type page struct{ b bytes.Buffer }

// raw writes markup.
func (p *page) raw(m markup) { p.b.WriteString(string(m)) }

// rawIf writes markup if ok.
func (p *page) rawIf(ok bool, m markup) {
	if ok {
		p.raw(m)
	}
}

// escapes are those of a text between elements, in a title, and in a value between double quotes.
func escapes() []string {
	return []string{"&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\x00", "\uFFFD"}
}

// text writes s as it reads, where markup has opened an element or a value between double quotes. An address
// and a script are no such places.
func (p *page) text(s string) {
	if !strings.ContainsAny(s, "&<>\"'\x00") {
		p.b.WriteString(s)
		return
	}
	p.b.WriteString(strings.NewReplacer(escapes()...).Replace(s))
}

// put writes a text with markup before and behind it.
func (p *page) put(before markup, s string, behind markup) {
	p.raw(before)
	p.text(s)
	p.raw(behind)
}

// number writes a number with markup before and behind it.
func (p *page) number(before markup, n int, behind markup) {
	p.raw(before)
	fmt.Fprint(&p.b, n)
	p.raw(behind)
}

// fragment writes s as the part of an address behind #: as a browser looks for the id that is the same text.
func (p *page) fragment(s string) {
	for _, c := range []byte(s) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			p.b.WriteByte(c)
		} else {
			fmt.Fprintf(&p.b, "%%%02x", c)
		}
	}
}

// local writes an address of this server as the value of src or href. Any other becomes one that leads
// nowhere.
func (p *page) local(address string) {
	if !strings.HasPrefix(address, "/") || strings.HasPrefix(address, "//") || strings.ContainsAny(address, "\\\t\r\n") {
		address = "#"
	}
	p.text(address)
}
