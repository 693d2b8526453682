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
	// maxWord is how long a word of a message may be, in bytes, to be shown.
	maxWord = 20
	// hidden stands in a text for the part that is left out of it.
	hidden = "…"
)

// describe is a panic's value for people. An error of the runtime ("index out of range [5]
// with length 3") is shown, as it holds no data. Of other texts only plain words are shown: a
// word that is in quotes, is long, has a digit or a sign in it, or follows a word such as
// "password" may be data or a secret, and is left out. Of all else only the type is shown.
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

// text calls f, which belongs to a value that something broken may have made.
func text(f func() string) (s string) {
	defer func() {
		if recover() != nil {
			s = "its text panics, too"
		}
	}()
	return f()
}

// mask keeps the plain words of s and hides all other ones.
func mask(s string) string {
	var (
		shown  []string
		quoted rune // the quote that is open, 0 if none is
		secret bool // a word said that a secret follows
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

// head is as much of s as is looked at.
func head(s string) string { return s[:min(len(s), 4*maxValue)] }

// plain reports whether a word is one of a language or of a program: letters, with the
// signs that texts have around and between words.
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

// oneLine replaces what a terminal or a log would act on.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, head(s))
}

// cut bounds s to maxValue bytes, at a rune's edge.
func cut(s string) string {
	if len(s) <= maxValue {
		return s
	}
	s = s[:maxValue-len(hidden)]
	return strings.ToValidUTF8(s, "") + hidden
}

// As is the panic that an error holds, or nil.
func As(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
