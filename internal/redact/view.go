package redact

import (
	"html"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// deepest bounds how many nested escapes a view reads through.
const deepest = 3

// span is a range of bytes of the text.
type span struct{ from, to int }

// view is a text as a reader sees it, with the place of each of its bytes in the original text.
type view struct {
	bytes []byte
	at    []span // where each byte comes from
}

func newView(text string) view {
	v := view{[]byte(text), make([]span, len(text))}
	for i := range v.at {
		v.at[i] = span{i, i + 1}
	}
	return v
}

// find returns where one of the folded forms stands in the text, and where the text ends, or was truncated with an
// ellipsis, after the beginning of one.
func (v view) find(forms []string) (found []span) {
	f := v.fold()
	text := string(f.bytes)
	ends := endsOf(text)
	for _, form := range forms {
		for from := 0; ; {
			i := strings.Index(text[from:], form)
			if i < 0 {
				break
			}
			from += i
			found = append(found, span{f.at[from].from, f.at[from+len(form)-1].to})
			from += len(form)
		}
		for _, end := range ends {
			for n := min(len(form)-1, end); n >= shortest; n-- {
				if strings.HasSuffix(text[:end], form[:n]) {
					found = append(found, span{f.at[end-n].from, f.at[end-1].to})
					break
				}
			}
		}
	}
	return found
}

// endsOf returns the places where a text ends or was truncated, possibly in the middle of an escape.
func endsOf(text string) []int {
	ends := whole(nil, text)
	for from := 0; ; {
		i := strings.Index(text[from:], "…")
		if i < 0 {
			return ends
		}
		ends = whole(ends, strings.TrimRight(text[:from+i], " "))
		from += i + len("…")
	}
}

// whole adds the end of text, with and without an escape that begins there.
func whole(ends []int, text string) []int {
	ends = append(ends, len(text))
	if i := strings.LastIndexAny(text, `\%&`); i >= len(text)-longestEntity && i >= 0 {
		ends = append(ends, i)
	}
	return ends
}

// fold returns v with its case folded.
func (v view) fold() view {
	out := view{make([]byte, 0, len(v.bytes)), make([]span, 0, len(v.at))}
	for i := 0; i < len(v.bytes); {
		r, n := utf8.DecodeRune(v.bytes[i:])
		whole := span{v.at[i].from, v.at[i+n-1].to}
		if r == utf8.RuneError && n == 1 {
			out.add(whole, v.bytes[i])
		} else {
			out.add(whole, utf8.AppendRune(nil, foldRune(r))...)
		}
		i += n
	}
	return out
}

func (v *view) add(at span, b ...byte) {
	for _, c := range b {
		v.bytes, v.at = append(v.bytes, c), append(v.at, at)
	}
}

func foldRune(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

func folded(s string) string { return string(newView(s).fold().bytes) }

// unescaped returns v with each escape replaced by the text that it stands for; changed is false if there is none.
func (v view) unescaped() (out view, changed bool) {
	for i := 0; i < len(v.bytes); {
		b, n := unescape(v.bytes[i:])
		if n > 0 {
			changed = true
		} else {
			b, n = v.bytes[i:i+1], 1
		}
		out.add(span{v.at[i].from, v.at[i+n-1].to}, b...)
		i += n
	}
	return out, changed
}

// unescape reads the escape that b begins with, of n bytes; n is 0 if there is none.
func unescape(b []byte) (stands []byte, n int) {
	switch b[0] {
	case '+': // a space in a query
		return []byte{' '}, 1
	case '%':
		if c, ok := hexByte(b, 1); ok {
			return []byte{c}, 3
		}
	case '&':
		return entity(b)
	case '\\':
		return backslash(b)
	}
	return nil, 0
}

// hexByte returns the byte that two digits at b[i:] stand for.
func hexByte(b []byte, i int) (byte, bool) {
	if len(b) < i+2 {
		return 0, false
	}
	c, err := strconv.ParseUint(string(b[i:i+2]), 16, 8)
	return byte(c), err == nil
}

// longestEntity is longer than any entity name in common texts, in bytes.
const longestEntity = 12

func entity(b []byte) ([]byte, int) {
	name, _, ended := strings.Cut(string(b[:min(len(b), longestEntity)]), ";")
	if !ended {
		return nil, 0
	}
	if text := html.UnescapeString(name + ";"); text != name+";" {
		return []byte(text), len(name) + 1
	}
	return nil, 0
}

// backslash reads the escapes of JSON (RFC 8259, 7) and of Go's quoted strings.
func backslash(b []byte) ([]byte, int) {
	if len(b) < 2 {
		return nil, 0
	}
	const letters, stand = `abfnrtv`, "\a\b\f\n\r\t\v"
	if i := strings.IndexByte(letters, b[1]); i >= 0 {
		return []byte{stand[i]}, 2
	}
	switch b[1] {
	case '"', '\'', '\\', '/', '`':
		return b[1:2], 2
	case 'x':
		if c, ok := hexByte(b, 2); ok {
			return []byte{c}, 4
		}
	case 'u':
		r, ok := hexRune(b, 4)
		if low, two := lowHalf(b, 6); ok && two && utf16.IsSurrogate(r) {
			return utf8.AppendRune(nil, utf16.DecodeRune(r, low)), 12
		}
		if ok {
			return utf8.AppendRune(nil, r), 6
		}
	case 'U':
		if r, ok := hexRune(b, 8); ok {
			return utf8.AppendRune(nil, r), 10
		}
	}
	return nil, 0
}

// lowHalf decodes the second escape (\u and four digits) of a surrogate pair, at b[i:].
func lowHalf(b []byte, i int) (rune, bool) {
	if len(b) < i+6 || b[i] != '\\' || b[i+1] != 'u' {
		return 0, false
	}
	return hexRune(b[i:], 4)
}

// hexRune returns the character that the digits after the two bytes of a \u stand for.
func hexRune(b []byte, digits int) (rune, bool) {
	if len(b) < 2+digits {
		return 0, false
	}
	r, err := strconv.ParseInt(string(b[2:2+digits]), 16, 32)
	return rune(r), err == nil
}
