package pushgateway

import (
	"bytes"
	"net/http"

	"hwsagent/receivers"
)

// checkLabels refuses a text if a line has more labels than a series may have. The text parser compares each label with
// all before it: a line of 320 KB takes it more than a minute.
func checkLabels(body []byte, most int) error {
	for line := range bytes.Lines(body) {
		// A bucket or a quantile has one additional label.
		if n := countLabels(line); n > most+1 {
			return receivers.Refuse(receivers.TooManyLabels, http.StatusBadRequest, "a line has %d labels, more than limits.labels (%d)", n, most)
		}
	}
	return nil
}

// countLabels returns how many labels a line of text has: one for each = outside quotes. A value contains no line feed,
// so quotes end with the line.
func countLabels(line []byte) (n int) {
	if trimmed := bytes.TrimLeft(line, " \t"); len(trimmed) > 0 && trimmed[0] == '#' {
		return 0
	}
	quoted, escaped := false, false
	for _, c := range line {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case c == '=' && !quoted:
			n++
		}
	}
	return n
}
