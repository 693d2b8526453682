package redact

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// shortest is the length in bytes from which on a secret is looked for in texts. A shorter one would
// be found in innocent words, and is soon guessed.
const shortest = 4

// Secrets are values that must not be shown. The zero value has none, as has a nil pointer. Add to
// it first; once it is shared it may only be read, which is safe for concurrent use.
type Secrets struct {
	// forms are the values as texts may have them, without the difference of upper and lower case, without duplicates.
	forms []string
}

// New is the secrets with these values.
func New(values ...string) *Secrets {
	s := new(Secrets)
	s.Add(values...)
	return s
}

// Add adds values. Those that are shorter than four bytes are left out. Of a value of several lines,
// such as a key in PEM, each long line counts as a secret, too.
func (s *Secrets) Add(values ...string) {
	for _, v := range values {
		v = strings.TrimSpace(v)
		if len(v) < shortest {
			continue
		}
		s.addForms(v)
		if strings.Contains(v, "\n") {
			for line := range strings.Lines(v) {
				if line = strings.TrimSpace(line); len(line) >= 16 && !strings.HasPrefix(line, "-----") {
					s.addForms(line)
				}
			}
		}
	}
}

// Join adds what another has; nil has nothing.
func (s *Secrets) Join(other *Secrets) {
	if other != nil {
		s.forms = append(s.forms, other.forms...)
		slices.Sort(s.forms)
		s.forms = slices.Compact(s.forms)
	}
}

// AddBasic adds a password, alone and as the header Authorization carries it (RFC 7617, 2).
func (s *Secrets) AddBasic(user, password string) {
	s.Add(password, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

// AddURL adds the password and the values of the query of an address.
func (s *Secrets) AddURL(u *url.URL) {
	if u == nil {
		return
	}
	if password, ok := u.User.Password(); ok {
		s.AddBasic(u.User.Username(), password)
	}
	for _, values := range u.Query() {
		s.Add(values...)
	}
}

// AddSent adds the credentials that a request carried, such as a token that was issued for it.
func (s *Secrets) AddSent(req *http.Request) {
	if req == nil {
		return
	}
	for _, name := range []string{"Authorization", "Proxy-Authorization"} {
		for _, value := range req.Header.Values(name) {
			if _, bare, ok := strings.Cut(value, " "); ok { // the scheme is none
				value = bare
			}
			s.Add(value)
		}
	}
	s.AddURL(req.URL)
}

// addForms adds a value as it is, in hexadecimal digits and in base64. Escapes are not listed here:
// Cut reads texts through them, and for that a value which itself looks escaped is read likewise.
func (s *Secrets) addForms(v string) {
	s.forms = append(s.forms, folded(v), hex.EncodeToString([]byte(v)))
	for read, level := newView(v), 0; level < deepest; level++ {
		next, changed := read.unescaped()
		if !changed || len(next.bytes) < shortest {
			break
		}
		read = next
		s.forms = append(s.forms, folded(string(read.bytes)))
	}
	// In base64 a value reads in one of three ways, after how many bytes it follows. Only those
	// characters count that it alone decides.
	for before := range 3 {
		code := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), v...))
		from, to := (8*before+5)/6, 8*(before+len(v))/6
		if to-from < shortest {
			continue
		}
		code = code[from:to]
		s.forms = append(s.forms, folded(code))
		if safe := strings.NewReplacer("+", "-", "/", "_").Replace(code); safe != code { // RFC 4648, 5
			s.forms = append(s.forms, folded(safe))
		}
	}
	slices.Sort(s.forms)
	s.forms = slices.Compact(s.forms)
}

// Cut is text with [Mark] in the place of each secret. See the function of that name.
func (s *Secrets) Cut(text string) string { return Cut(text, s) }

// Error is err, or where its text has secrets an error with its text without them. That one still
// wraps err: errors.Is and errors.As see it, so do not print what they find.
func (s *Secrets) Error(err error) error {
	if err == nil {
		return nil
	}
	if text := s.Cut(err.Error()); text != err.Error() {
		return &cutError{text, err}
	}
	return err
}

type cutError struct {
	text string
	err  error
}

func (e *cutError) Error() string { return e.text }
func (e *cutError) Unwrap() error { return e.err }

// Cut is text with [Mark] in the place of each secret of all sets. It finds a secret as it is, in
// upper or lower case, in hexadecimal digits, in base64, and through the escapes of URLs, JSON,
// quoted Go strings and HTML, one within another up to three times. The beginning of a secret that
// stands at the end of the text, which may have been shortened there, is cut as well.
func Cut(text string, sets ...*Secrets) string {
	var gaps []span
	for v, level := newView(text), 0; level <= deepest; level++ {
		for _, set := range sets {
			if set != nil {
				gaps = append(gaps, v.find(set.forms)...)
			}
		}
		next, changed := v.unescaped()
		if !changed {
			break
		}
		v = next
	}
	if len(gaps) == 0 {
		return text
	}
	slices.SortFunc(gaps, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	done := 0
	for i := 0; i < len(gaps); {
		gap := gaps[i]
		for i++; i < len(gaps) && gaps[i].from <= gap.to; i++ {
			gap.to = max(gap.to, gaps[i].to)
		}
		b.WriteString(text[done:gap.from] + Mark)
		done = gap.to
	}
	return b.String() + text[done:]
}
