package client

import (
	"compress/gzip"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"hwsagent/internal/httpbound"
)

// bodyText returns the readable part of a response body in one line: the title of a web page, such as
// a proxy's, else the text; "" if it only repeats the status.
func bodyText(status int, body []byte) string {
	text := plain(body)
	if title := pageTitle(text); title != "" {
		text = title
	}
	if words := strings.TrimPrefix(text, strconv.Itoa(status)+" "); !strings.EqualFold(words, http.StatusText(status)) {
		return words
	}
	return ""
}

// statusText returns a status with its text, which may be "".
func statusText(status int, text string) string {
	s := fmt.Sprintf("%d %s", status, http.StatusText(status))
	if status == http.StatusSwitchingProtocols {
		text = httpbound.Switched // the bytes after it are in a protocol that the agent did not ask for
	}
	if text != "" {
		s += ": " + text
	}
	return s
}

// isPage reports whether text begins as an HTML page does, perhaps after comments or an XML declaration.
func isPage(text string) bool {
	begins := func(with string) bool { return len(text) >= len(with) && strings.EqualFold(text[:len(with)], with) }
	for _, skip := range [][2]string{{"<?xml", "?>"}, {"<!--", "-->"}} {
		for begins(skip[0]) {
			_, text, _ = strings.Cut(text, skip[1]) // a comment that does not end leaves nothing
			text = strings.TrimSpace(text)
		}
	}
	return begins("<html") || begins("<!doctype html")
}

// saysPage reports whether the header of an answer declares text, its body, an HTML page. A receiver's answer without markup may
// have that type by default, so the text must begin with a tag, or be in an encoding that the agent did not ask for and cannot
// read.
func saysPage(h http.Header, text string) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case "text/html", "application/xhtml+xml":
		return strings.HasPrefix(text, "<") || text != "" && encoding(h) != "" && encoding(h) != "gzip"
	}
	return false
}

// encoding returns how the body of an answer is encoded, "" if it is not.
func encoding(h http.Header) string {
	e := strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding")))
	switch e {
	case "identity":
		return ""
	case "x-gzip": // RFC 9110, section 8.4.1.3
		return "gzip"
	}
	return e
}

// pageTitle returns the title of an HTML page, "" if text is not an HTML page.
func pageTitle(text string) string {
	page := strings.ToLower(text)
	if !isPage(text) || len(page) != len(text) {
		return ""
	}
	_, after, _ := strings.Cut(page, "<title>")
	title, _, ended := strings.Cut(after, "</title>")
	if !ended {
		return ""
	}
	begin := len(page) - len(after)
	return plain([]byte(html.UnescapeString(strings.TrimSpace(text[begin : begin+len(title)]))))
}

// plain turns bytes from a server into one printable line.
func plain(b []byte) string {
	s := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(b), ""))
	return strings.Join(strings.Fields(s), " ")
}

// maxZipped bounds the compressed bytes that are read for readBody bytes of text.
const maxZipped = 64 << 10

// readText reads the part of an answer's body that is needed, as far as it comes in time. The agent asks for no encoding,
// but a server or something in front of it may compress anyway (RFC 9110, section 12.5.3), also a login page.
func readText(resp *http.Response) []byte {
	if resp.Body == http.NoBody {
		return nil
	}
	var body io.Reader = resp.Body
	if encoding(resp.Header) == "gzip" {
		z, err := gzip.NewReader(io.LimitReader(body, maxZipped))
		if err != nil {
			return nil
		}
		body = z
	}
	buf := make([]byte, readBody)
	n, _ := io.ReadFull(body, buf)
	return buf[:n]
}

// certificateText names the certificate that err refuses and its issuer; "" if err refuses none.
func certificateText(err error) string {
	v, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(v.UnverifiedCertificates) == 0 {
		return ""
	}
	c := v.UnverifiedCertificates[0]
	return fmt.Sprintf("certificate of %q, issued by %q", shortName(c.Subject), shortName(c.Issuer))
}

// maxShownName bounds a name in a certificate, in bytes.
const maxShownName = 120

func shortName(n pkix.Name) string {
	name := plain([]byte(n.String()))
	return plain([]byte(name[:min(len(name), maxShownName)]))
}

// leadsTo returns the target of a redirect, without user, password and query; "" if the answer is not a redirect or has no target.
func leadsTo(from string, resp *http.Response) string {
	base, err := url.Parse(from)
	said := resp.Header.Get("Location")
	if resp.StatusCode/100 != 3 || said == "" || err != nil {
		return ""
	}
	to, err := base.Parse(said)
	if err != nil {
		return ""
	}
	shown := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
	return plain([]byte(shown.String()))
}
