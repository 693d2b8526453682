package client

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"hwsagent/httpbound"
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

// isPage reports whether text begins as an HTML page does.
func isPage(text string) bool {
	begins := func(with string) bool { return len(text) >= len(with) && strings.EqualFold(text[:len(with)], with) }
	return begins("<html") || begins("<!doctype html")
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

// readText reads the part of an answer's body that is needed, as far as it comes in time.
func readText(resp *http.Response) []byte {
	if resp.Body == http.NoBody {
		return nil
	}
	buf := make([]byte, readBody)
	n, _ := io.ReadFull(resp.Body, buf)
	return buf[:n]
}
