package raid

import (
	"strings"

	"hwsagent/probes/hw"
)

// section is a heading in a program's text and the fields below it. The first value of a name counts.
type section struct {
	kind   string // as the dialect's heading function calls it; "" of one that is left out
	title  string
	fields map[string]string
}

func (s *section) say(names ...string) string {
	for _, name := range names {
		switch v := s.fields[name]; strings.ToLower(v) {
		case "", "n/a", "not available", "unknown", "not applicable", "not supported":
		default:
			return v
		}
	}
	return ""
}

// Bounds of a text: a controller with 240 disks has 10,000 lines.
const (
	maxSections = 10_000
	maxFields   = 500 // of a section
)

// divide divides a text at the lines for which heading reports a kind of section; separator is between name and value.
func divide(text, separator string, heading func(line string) (kind, title string, ok bool)) (all []section) {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r", ""), "\uFFFD")
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\n")
		if kind, title, ok := heading(line); ok {
			if len(all) == maxSections {
				return all
			}
			all = append(all, section{kind: kind, title: title, fields: make(map[string]string)})
			continue
		}
		name, value, ok := strings.Cut(line, separator)
		if !ok || len(all) == 0 {
			continue
		}
		last, name := &all[len(all)-1], strings.Join(strings.Fields(name), " ")
		if _, there := last.fields[name]; !there && len(last.fields) < maxFields {
			last.fields[name] = strings.TrimSpace(value)
		}
	}
	return all
}

// stateBegin returns the status of the first prefix in the list that the text begins with; unknown if there is none.
func stateBegin(text string, of []prefixState) hw.Status {
	low := strings.ToLower(text)
	for _, s := range of {
		if strings.HasPrefix(low, s.prefix) {
			return s.status
		}
	}
	return hw.Unknown
}

type prefixState struct {
	prefix string // in lower case
	status hw.Status
}
