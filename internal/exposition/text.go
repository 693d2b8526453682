package exposition

import (
	"bytes"
	"fmt"
)

// textFormat is one of the formats that are lines of text.
type textFormat int

const (
	promText textFormat = iota
	openMetrics1
	openMetrics2
)

// checkText checks a text for a parser of textparse.
func checkText(body []byte, format textFormat) error {
	if i := bytes.IndexByte(body, 0); i >= 0 {
		return fmt.Errorf("there is a zero byte at offset %d, which the parser would take for the end", i)
	}
	return checkRecords(body, format, maxLabels)
}

// CheckText checks the bounds of a body of the text format for a parser that does not come from [New]. labels is
// the maximum number of labels of a series. The error is an [ErrBound].
func CheckText(body []byte, labels int) error { return checkRecords(body, promText, labels) }

// checkRecords checks the bounds of a text without parsing it. It finds the records, each a
// line or, if a quoted string has line breaks, several lines, exactly as the lexers of textparse do
// while the text is valid. At a syntax error it may continue from a different place, but there the
// parser stops.
func checkRecords(body []byte, format textFormat, labels int) error {
	s := textCheck{body: body, format: format, most: labels}
	for s.at < len(body) {
		begin := s.at
		if s.plainLine() {
			continue
		}
		if err := s.record(); err != nil {
			return fmt.Errorf("line %d: %w", bytes.Count(body[:begin], []byte("\n"))+1, err)
		}
	}
	return nil
}

// unindented returns a body of the text format that has passed checkText without the blanks before its lines: "leading
// […] whitespace is ignored" (https://prometheus.io/docs/instrumenting/exposition_formats/#text-format-details), but
// Prometheus' parser makes it a part of the name.
func unindented(body []byte) []byte {
	if !bytes.HasPrefix(body, []byte(" ")) && !bytes.HasPrefix(body, []byte("\t")) && !bytes.Contains(body, []byte("\n ")) && !bytes.Contains(body, []byte("\n\t")) {
		return body
	}
	out := make([]byte, 0, len(body)+1) // each parser appends a newline
	s := textCheck{body: body, format: promText, most: maxLabels}
	for s.at < len(body) {
		begin := s.at
		if !s.plainLine() {
			_ = s.record() // checked before
		}
		out = append(out, bytes.TrimLeft(body[begin:s.at], " \t")...)
	}
	return out
}

// WindowsLines reports whether a text has lines that end with a carriage return and a line feed.
func WindowsLines(text []byte) bool { return bytes.Contains(text, []byte("\r\n")) }

// UnixLines returns a text with line feeds in place of Windows line ends, as a copy.
func UnixLines(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }

// textCheck is the state of a check.
type textCheck struct {
	body   []byte
	format textFormat
	most   int // labels of a series
	at     int // offset in body of the next byte to look at
}

// plainBytes is the length of a line up to which no bound can be exceeded: a label takes at least four bytes, and
// buckets with labels in so few bytes expand to less than maxExpansion times as much.
const plainBytes = 1024

// plainLine skips a short line that is a whole record, as nearly all are, and reports whether it did. All strings
// in such a line are closed: it has no backslash and an even number of quotation marks.
func (s *textCheck) plainLine() bool {
	rest := s.body[s.at:min(len(s.body), s.at+min(plainBytes, 4*s.most))]
	n := bytes.IndexByte(rest, '\n')
	if n < 0 || rest[0] == ' ' || rest[0] == '\t' {
		return false
	}
	line := rest[:n]
	marks := bytes.Count(line, []byte{'"'})
	if rest[0] == '#' && (marks > 0 || n > maxUnitBytes) || marks%2 != 0 || marks > 0 && bytes.IndexByte(line, '\\') >= 0 {
		return false
	}
	s.at += n + 1
	return true
}

// record checks the record that begins here and moves to the next.
func (s *textCheck) record() error {
	begin := s.at
	s.skipBlanks()
	if s.peek() == '#' {
		return s.comment(begin)
	}
	head := s.at
	for isNameByte(s.peek()) {
		s.at++
	}
	s.skipBlanks()
	if s.peek() == '{' {
		if err := s.labels(); err != nil {
			return err
		}
	}
	headBytes, rest := s.at-head, s.at
	s.skipLine()
	if s.at-begin > maxRecordBytes {
		return fmt.Errorf("%w: a line has %d bytes, more than %d", ErrBound, s.at-begin, maxRecordBytes)
	}
	return s.composite(headBytes, s.body[begin:s.at], s.body[rest:s.at])
}

// comment checks a record that begins with #.
func (s *textCheck) comment(begin int) error {
	s.at++
	for s.peek() == ' ' || s.peek() == '\t' {
		s.at++
	}
	unit := false
	if rest := s.body[s.at:]; bytes.HasPrefix(rest, []byte("HELP")) || bytes.HasPrefix(rest, []byte("TYPE")) || s.format != promText && bytes.HasPrefix(rest, []byte("UNIT")) {
		unit = rest[0] == 'U'
		s.at += len("HELP")
		if s.peek() == ' ' || s.peek() == '\t' {
			s.at++
			s.skipBlanks()
			if s.peek() == '"' {
				s.quoted()
			}
			for isNameByte(s.peek()) {
				s.at++
			}
		}
	}
	text := s.at
	s.skipLine()
	switch {
	case s.at-begin > maxRecordBytes:
		return fmt.Errorf("%w: a comment has %d bytes, more than %d", ErrBound, s.at-begin, maxRecordBytes)
	case unit && s.at-text > maxUnitBytes:
		return fmt.Errorf("%w: a unit has %d bytes, more than %d", ErrBound, s.at-text, maxUnitBytes)
	}
	return nil
}

// labels moves behind the brace that closes the labels beginning here, or stops at the end of the line
// if there is none.
func (s *textCheck) labels() error {
	count := 0
	for s.at < len(s.body) {
		switch s.body[s.at] {
		case '"':
			s.quoted()
		case '}':
			s.at++
			return nil
		case '\n':
			return nil
		case '=':
			if count++; count > s.most {
				return fmt.Errorf("%w, more than %d", ErrLabels, s.most)
			}
			s.at++
		default:
			s.at++
		}
	}
	return nil
}

// quoted moves behind the quotation mark that closes the string beginning here, or to the end of the body.
func (s *textCheck) quoted() {
	for s.at++; s.at < len(s.body); s.at++ {
		switch s.body[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return
		}
	}
	s.at = len(s.body)
}

// composite bounds the series produced by one line of OpenMetrics 2.0, whose value may be a list of
// buckets or quantiles in braces. rest is the line behind the labels, which take headBytes.
func (s *textCheck) composite(headBytes int, line, rest []byte) error {
	if s.format != openMetrics2 || !bytes.HasPrefix(rest, []byte(" {")) {
		return nil
	}
	if end := bytes.IndexByte(rest, '}'); end >= 0 {
		rest = rest[:end]
	}
	bytes, err := expanded(bytes.Count(rest, []byte(","))+1, headBytes)
	if err == nil {
		err = checkExpansion(bytes, len(line))
	}
	return err
}

// expanded returns the bytes of the series produced by one value, or an error if they are too many.
func expanded(series, seriesBytes int) (int, error) {
	bytes := series * (seriesBytes + 64) // with a suffix of the name, the label of the bucket, and lengths
	if bytes > maxExpanded {
		return 0, fmt.Errorf("%w: the %d buckets of one value, each a series with all labels, would take %d bytes, more than %d", ErrBound, series, bytes, maxExpanded)
	}
	return bytes, nil
}

// checkExpansion bounds the bytes produced by the given number of bytes.
func checkExpansion(expanded, of int) error {
	if expanded > maxExpansion*of {
		return fmt.Errorf("%w: the buckets in %d bytes, each a series with all labels, would take %d bytes, more than %d times as much", ErrBound, of, expanded, maxExpansion)
	}
	return nil
}

// peek returns the byte here, or 0 at the end.
func (s *textCheck) peek() byte {
	if s.at < len(s.body) {
		return s.body[s.at]
	}
	return 0
}

// skipBlanks skips blanks between the tokens of the text format; OpenMetrics has none.
func (s *textCheck) skipBlanks() {
	for s.format == promText && (s.peek() == ' ' || s.peek() == '\t') {
		s.at++
	}
}

// skipLine moves behind the end of the line.
func (s *textCheck) skipLine() {
	if n := bytes.IndexByte(s.body[min(s.at, len(s.body)):], '\n'); n >= 0 {
		s.at += n + 1
		return
	}
	s.at = len(s.body)
}

// isNameByte reports whether the byte may occur in an unquoted metric name.
func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == ':'
}
