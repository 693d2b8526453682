// Package text counts nouns, and cleans and shortens texts, for logs, messages and tables that people read.
package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Counted returns the number with the noun, in the plural unless the number is 1.
func Counted(n int, noun string) string { return Plural(n, noun, noun+"s") }

// Plural is Counted for words with a plural of their own.
func Plural(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// OneLine puts a text on one line: control characters, of which line breaks are some, become single blanks.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 }), " ")
}

// FirstLine returns the first line of a text, without its period.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSuffix(strings.TrimSpace(line), ".")
}

// Printable replaces control characters by question marks, so that a text from elsewhere cannot control a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

// Bound cuts a text that is longer than n bytes behind a whole character, and marks that.
func Bound(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
