package redact

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// shortest is the least length, in bytes, of a secret that is cut out of texts. A shorter one would match innocent
// words, and is soon guessed.
const shortest = 4

// Secrets are values that must not be shown. The zero value has none, and neither has a nil pointer. Add values first;
// once shared it may only be read, which is safe for concurrent use.
type Secrets struct {
	// forms are the forms in which texts may contain the values, with case folded and without duplicates.
	forms []string
}

// New returns the secrets with these values.
func New(values ...string) *Secrets {
	s := new(Secrets)
	s.Add(values...)
	return s
}

// Add adds values of at least four bytes. For a value of several lines, such as a key in PEM, it also adds each long
// line.
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

// Join adds the secrets of other, which may be nil.
func (s *Secrets) Join(other *Secrets) {
	if other != nil {
		s.forms = append(s.forms, other.forms...)
		slices.Sort(s.forms)
		s.forms = slices.Compact(s.forms)
	}
}

// AddBasic adds a password, alone and as in the header Authorization (RFC 7617, 2).
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

// AddSent adds the credentials that a request carried, such as a token issued for it.
func (s *Secrets) AddSent(req *http.Request) {
	if req == nil {
		return
	}
	for _, name := range []string{"Authorization", "Proxy-Authorization"} {
		for _, value := range req.Header.Values(name) {
			if _, bare, ok := strings.Cut(value, " "); ok { // the scheme is not secret
				value = bare
			}
			s.Add(value)
		}
	}
	s.AddURL(req.URL)
}

// addForms adds a value as it is, in hexadecimal digits and in base64. Escaped forms are not needed, because Cut
// unescapes texts; for the same reason a value that itself looks escaped is unescaped here.
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
	// In base64 a value has one of three forms, depending on the number of bytes before it. Only characters that depend
	// on the value alone count.
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

// Cut returns text with [Mark] in place of each secret. See the function of that name.
func (s *Secrets) Cut(text string) string { return Cut(text, s) }

// Error returns err, or if its text has secrets, an error with the text without them. That error still wraps err for
// errors.Is and errors.As, so do not print what they find.
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

// Cut returns text with [Mark] in place of each secret of all sets. It finds secrets in upper or lower case, in
// hexadecimal digits, in base64, and within escapes of URLs, JSON, quoted Go strings and HTML, nested up to three
// times. It also cuts the beginning of a secret at the end of the text, which may have been truncated there.
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
