package agent

import (
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

const hidden = "<secret>"

var (
	urlUser  = regexp.MustCompile(`://[^/?#\s"'` + "`" + `]*@`)
	urlQuery = regexp.MustCompile(`(://[^?\s"'` + "`" + `]*)\?[^\s"'` + "`" + `]+`)
	// secretLine finds secrets in a file that cannot be parsed.
	secretLine = regexp.MustCompile(`(?i)((?:passw\w*|pasw\w*|\w*token|tok\w*|secrets?|credentials|community|key|authorization|headers?|values|endpoint_params)["']?\s*:\s*)\S.*`)
)

// secretKey reports whether the value under key is a secret as such. So is one under a key
// that is misspelled, or of another program. Keys that end in _file or _ref name a secret and
// are none.
func secretKey(key string) bool {
	for _, end := range []string{"_file", "_ref", "_url", "_id"} {
		if strings.HasSuffix(key, end) {
			return false
		}
	}
	for _, known := range []string{
		"password", "bearer_token", "credentials", "client_secret", "client_certificate_key", "community",
		"auth_password", "priv_password", "key", "secret", "secret_key", "secrets",
	} {
		if key == known || len(known) > 5 && distance(key, known) <= len(known)/4 {
			return true
		}
	}
	for _, part := range []string{"passw", "secret", "token", "credential"} {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}

// headerShown lists the headers whose values may be shown: they name a tenant or a
// program, and a person looking for a mistake needs them.
func headerShown(name string) bool {
	switch strings.ToLower(name) {
	case "x-scope-orgid", "user-agent", "x-prometheus-remote-write-version":
		return true
	}
	return false
}

// maskScalar is the scalar at path as it may be shown.
func maskScalar(path, value string) string {
	steps := strings.Split(listStep.ReplaceAllString(path, ""), ".")
	for i, s := range steps {
		if secretKey(s) {
			return hidden
		}
		if (s == "endpoint_params" || s == "env") && i+1 < len(steps) {
			return hidden
		}
		if s == "http_headers" && i+2 < len(steps) && steps[i+2] == "values" && !headerShown(steps[i+1]) {
			return hidden
		}
		if (s == "headers" || s == "proxy_connect_header") && i+1 < len(steps) && !headerShown(strings.Join(steps[i+1:], ".")) {
			return hidden
		}
	}
	if last := steps[len(steps)-1]; last == "url" || strings.HasSuffix(last, "_url") {
		if at := strings.LastIndexByte(value, '@'); at >= 0 && !strings.Contains(value, "://") {
			return hidden + value[at:] // an address without //
		}
	}
	return maskURL(value)
}

// maskURL hides user, password and query of the URLs in s.
func maskURL(s string) string {
	if !strings.Contains(s, "://") {
		return s
	}
	s = urlUser.ReplaceAllString(s, "://"+hidden+"@")
	return urlQuery.ReplaceAllString(s, "${1}?"+hidden)
}

// source is a line of the file without its secrets, and where the marker for column
// goes and how wide it is. Counts are in characters.
func (d *document) source(line, column int) (text string, caret, width int) {
	text = strings.TrimRight(d.lines[line-1], "\r")
	caret, width = column, 1
	if d.root == nil {
		text = maskURL(secretLine.ReplaceAllString(text, "${1}"+hidden))
		return window(text, min(caret, utf8.RuneCountInString(text)+1), width)
	}
	if d.inBlock(line) {
		return "", 0, 0
	}
	type span struct { // of a scalar that is not shown
		start, end int // in bytes of text
		with       string
	}
	var spans []span
	for _, at := range d.byLine[line] {
		path, n := at.path, at.n
		start := byteOffset(text, n.Column)
		end := scalarEnd(text, start, n, d.asWritten(n))
		raw := text[start:end]
		if n.Column == column {
			width = utf8.RuneCountInString(raw)
		}
		// A key without a value has nothing to hide, and what follows it is not its own.
		if m := maskScalar(path, d.asWritten(n)); d.asWritten(n) != "" && m != d.asWritten(n) {
			if raw != "" && (raw[0] == '"' || raw[0] == '\'') {
				m = raw[:1] + m + raw[:1]
			}
			spans = append(spans, span{start, end, m})
		}
	}
	if p, ok := d.keysAt[place{line, column}]; ok {
		width = utf8.RuneCountInString(d.keys[p].Value)
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i].start > spans[j].start })
	at := byteOffset(text, column)
	shown := len(text)
	for _, s := range spans {
		// What comes next begins at the latest where this ends, whatever the tree says.
		s.end = min(s.end, shown)
		shown = s.start
		grown := utf8.RuneCountInString(s.with) - utf8.RuneCountInString(text[s.start:s.end])
		switch {
		case s.start == at:
			width += grown
		case s.start < at:
			caret += grown
		}
		text = text[:s.start] + s.with + text[s.end:]
	}
	return window(maskURL(text), caret, max(1, width))
}

// widest is how much of a line is shown, in characters.
const widest = 160

// window cuts a long line down to the part around the marker.
func window(text string, caret, width int) (string, int, int) {
	runes := []rune(text)
	if len(runes) <= widest {
		return text, caret, width
	}
	from := max(0, min(caret-widest/2, len(runes)-widest))
	runes = runes[from:min(len(runes), from+widest)]
	caret -= from
	if from > 0 {
		runes[0] = '…'
	}
	return string(runes), caret, min(width, max(1, widest+1-caret))
}

// inBlock reports whether line is a further line of a secret of several lines, such as
// a key in PEM, which is never shown.
func (d *document) inBlock(line int) bool {
	nearest := ""
	from := 0
	for at, path := range d.valuesAt {
		if at.line <= line && at.line >= from && d.values[path].Kind == yaml.ScalarNode {
			nearest, from = path, at.line
		}
	}
	for at := range d.keysAt {
		if at.line == line {
			return false
		}
	}
	return from > 0 && from < line && maskScalar(nearest, "x") == hidden
}

// asWritten is a scalar's value as in the file, before expansion.
func (d *document) asWritten(n *yaml.Node) string {
	if w, ok := d.written[n]; ok {
		return w
	}
	return n.Value
}

// byteOffset is the offset of a column, counted in characters from 1.
func byteOffset(s string, column int) int {
	for i := range s {
		if column--; column < 1 {
			return i
		}
	}
	return len(s)
}

// scalarEnd is where the scalar that begins at start ends on its line.
func scalarEnd(text string, start int, n *yaml.Node, value string) int {
	rest := text[start:]
	switch {
	case rest == "":
		return start
	case rest[0] == '"' || rest[0] == '\'':
		for i := 1; i < len(rest); i++ {
			if rest[0] == '"' && rest[i] == '\\' {
				i++
			} else if rest[i] == rest[0] {
				return start + i + 1
			}
		}
	case strings.HasPrefix(rest, value) && value != "":
		return start + len(value)
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return start + 1 // the "|"; what follows is on other lines
	}
	return start + len(strings.TrimRight(rest, " \t\r"))
}
