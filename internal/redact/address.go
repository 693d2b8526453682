package redact

import (
	"net/url"
	"strings"
)

// URL returns an address without user, password, query and fragment, even if it does not parse: it hides a text in
// place of a port, which may be a password, and everything before the last @.
func URL(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "", address
	} else {
		scheme += "://"
	}
	parsed, err := url.Parse(address)
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
		rest, end = Mark+rest[at:], len(Mark)+end-at
	}
	if at := strings.LastIndexByte(rest, '@'); at > end && (err != nil || parsed.Host == "") {
		rest = Mark + rest[at:]
		if end = strings.IndexAny(rest, "/?#"); end < 0 {
			end = len(rest)
		}
	}
	host, tail := rest[:end], rest[end:]
	if colon := strings.LastIndexByte(host, ':'); err != nil && ok && colon >= 0 && !portLike(host[colon+1:]) {
		host = host[:colon+1] + Mark
	}
	if cut := strings.IndexAny(tail, "?#"); cut >= 0 && tail[cut+1:] != "" {
		tail = tail[:cut+1] + Mark
	}
	return scheme + host + tail
}

// Text returns a text with each address in it as [URL] shows it. An address within quotes ends with them, any other
// with the next space or quote.
func Text(text string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, "://")
		if i < 0 {
			break
		}
		from := i
		for from > 0 && schemeByte(text[from-1]) {
			from--
		}
		ends := " \t\r\n\"'`<>"
		if from > 0 && strings.IndexByte("\"'`", text[from-1]) >= 0 {
			ends = text[from-1:from] + "\n"
		}
		to := strings.IndexAny(text[i:], ends)
		if to < 0 {
			to = len(text) - i
		}
		b.WriteString(text[:from] + URL(text[from:i+to]))
		text = text[i+to:]
	}
	return b.String() + text
}

// schemeByte reports whether c may stand in the scheme of a URL (RFC 3986, 3.1).
func schemeByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'
}

// portLike reports whether s is a port, or a placeholder for one such as {{port}} or ${PORT}.
func portLike(s string) bool {
	return strings.Trim(s, "0123456789") == "" || strings.HasSuffix(s, "]") || strings.HasSuffix(s, "}")
}
