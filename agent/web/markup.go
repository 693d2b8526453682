package web

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"time"

	"hwsagent/agent/status"
)

// markup is HTML written in this program. The text of a receiver or device cannot become markup by mistake: only
// constants have this type without a conversion, and this package has no conversion.
type markup string

// page is HTML being written. Everything except markup goes through one of its methods, which escape a text for the
// place where it goes.
type page struct {
	b   bytes.Buffer
	now time.Time // of the status, in the zone of the host
}

// raw writes markup.
func (p *page) raw(m markup) { p.b.WriteString(string(m)) }

// rawIf writes markup if ok.
func (p *page) rawIf(ok bool, m markup) {
	if ok {
		p.raw(m)
	}
}

// escapes returns the escapes for text between elements, in a title, and in a value between double quotes.
func escapes() []string {
	all := []string{"&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "\x00", "\uFFFD"}
	for _, r := range status.BidiControl {
		all = append(all, string(r), "\uFFFD")
	}
	return all
}

// text writes s as text, inside an element or a value between double quotes that markup has opened. It is not safe
// inside an address or a script.
func (p *page) text(s string) {
	if !strings.ContainsAny(s, "&<>\"'\x00"+status.BidiControl) {
		p.b.WriteString(s)
		return
	}
	p.b.WriteString(strings.NewReplacer(escapes()...).Replace(s))
}

// put writes a text with markup before and after it.
func (p *page) put(before markup, s string, behind markup) {
	p.raw(before)
	p.text(s)
	p.raw(behind)
}

// number writes a number with markup before and after it.
func (p *page) number(before markup, n int, behind markup) {
	p.raw(before)
	fmt.Fprint(&p.b, n)
	p.raw(behind)
}

// encoded writes s into an address: as a fragment, in the form in which a browser finds the element with the id s, or as a value
// of a query.
func (p *page) encoded(s string) {
	for _, c := range []byte(s) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			p.b.WriteByte(c)
		} else {
			fmt.Fprintf(&p.b, "%%%02x", c)
		}
	}
}

// abroad writes an address elsewhere, which must be https, as the value of href. It replaces any other by one without effect.
func (p *page) abroad(address string) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		address = "#"
	}
	p.text(address)
}

// local writes an address of this server as the value of src or href. It replaces any other by one without effect.
func (p *page) local(address string) {
	if !strings.HasPrefix(address, "/") || strings.HasPrefix(address, "//") || strings.ContainsAny(address, "\\\t\r\n") {
		address = "#"
	}
	p.text(address)
}
