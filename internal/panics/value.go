package panics

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unicode"
)

const (
	// maxValue bounds a described value, in bytes.
	maxValue = 160
	// maxWord is the longest word of a message that is shown, in bytes.
	maxWord = 20
	// hidden replaces the omitted parts of a text.
	hidden = "…"
)

// describe returns a readable form of a panic's value. Errors of the runtime ("index out of range
// [5] with length 3") are shown, as they hold no data. Of other texts only plain words are shown:
// a word that is in quotes, is long, contains a digit or a sign, or follows a word such as
// "password" may be data or a secret, and is hidden. Of other values only the type is shown.
func describe(v any) string {
	switch v := v.(type) {
	case runtime.Error:
		return cut(oneLine(text(v.Error)))
	case error:
		return withType(v, mask(text(v.Error)))
	case string:
		return mask(v)
	case fmt.Stringer:
		return withType(v, mask(text(v.String)))
	}
	return fmt.Sprintf("a value of type %T", v)
}

func withType(v any, words string) string { return cut(fmt.Sprintf("%s (%T)", words, v)) }

// text calls f, a method of a value that may be broken.
func text(f func() string) (s string) {
	defer func() {
		if recover() != nil {
			s = "its text panics, too"
		}
	}()
	return f()
}

// mask keeps the plain words of s and hides all others.
func mask(s string) string {
	var (
		shown  []string
		quoted rune // the open quote, 0 if none
		secret bool // the word before announced a secret
	)
	for word := range strings.FieldsSeq(head(s)) {
		show := quoted == 0 && !secret && plain(word)
		if quoted == 0 && strings.HasPrefix(word, "'") {
			quoted, word = '\'', word[1:]
		}
		for _, r := range word {
			switch {
			case quoted == 0 && (r == '"' || r == '`'):
				quoted = r
			case r == quoted:
				quoted = 0
			}
		}
		secret = secret || announces(word)
		if show {
			shown = append(shown, word)
		} else if len(shown) == 0 || shown[len(shown)-1] != hidden {
			shown = append(shown, hidden)
		}
	}
	if len(shown) == 0 {
		return "an empty text"
	}
	return cut(strings.Join(shown, " "))
}

// head returns the part of s that is examined.
func head(s string) string { return s[:min(len(s), 4*maxValue)] }

// plain reports whether a word is an ordinary word or identifier: letters, with the signs
// that occur around and between words.
func plain(word string) bool {
	if len(word) > maxWord || strings.HasPrefix(word, "'") {
		return false
	}
	for _, r := range strings.Trim(word, "().,:;!?") {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !strings.ContainsRune("-'./*_", r) {
			return false
		}
	}
	return true
}

// announces reports whether a secret may follow a word.
func announces(word string) bool {
	word = strings.ToLower(word)
	for _, w := range []string{"passw", "secret", "token", "bearer", "basic", "auth", "credential", "key", "community"} {
		if strings.Contains(word, w) {
			return true
		}
	}
	return false
}

// oneLine replaces characters that a terminal or a log would interpret.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, head(s))
}

// cut bounds s to maxValue bytes, at a rune boundary.
func cut(s string) string {
	if len(s) <= maxValue {
		return s
	}
	s = s[:maxValue-len(hidden)]
	return strings.ToValidUTF8(s, "") + hidden
}

// As returns the panic that an error wraps, or nil.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
