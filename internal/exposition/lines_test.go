package exposition

import (
	"strconv"
	"strings"
	"testing"
)

// Blanks before a line are not part of what it says, whatever it says; in a string they are.
func TestBlanksBeforeLines(t *testing.T) {
	const text = "  lead 1\n\ttab{a=\"b\"} 2\n \t# HELP help Text.\n\t # TYPE help counter\n  help 3\n   \n\t\n  long{v=\"a\n  b\"} 4\n {\"quoted name\"} 5\nplain 6\n  last 7"
	want := []string{`{__name__="lead"} 1`, `{__name__="tab", a="b"} 2`, `{__name__="help"} 3 help counter`, `{__name__="long", v="a\n  b"} 4`, `{__name__="quoted name"} 5`, `{__name__="plain"} 6`, `{__name__="last"} 7`}
	var got []string
	err := Each(t.Context(), []byte(text), Text, func(s *Sample) error {
		line := s.Labels.String() + " " + strconv.FormatFloat(s.V, 'g', -1, 64)
		if s.Family != "" {
			line += " " + s.Family + " " + string(s.Meta.Type)
		}
		got = append(got, line)
		return nil
	})
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := Each(t.Context(), []byte("  a 1\n# EOF\n"), OpenMetrics, func(*Sample) error { return nil }); err == nil {
		t.Error("OpenMetrics has no blanks before a line, and takes one")
	}
}

// Windows line ends are named in the error; UnixLines replaces them.
func TestWindowsLineEnds(t *testing.T) {
	for _, contentType := range []string{Text, OpenMetrics} {
		text := []byte("# TYPE crlf gauge\r\ncrlf 1\r\n")
		if contentType == OpenMetrics {
			text = append(text, "# EOF\r\n"...)
		}
		none := func(*Sample) error { return nil }
		if err := Each(t.Context(), text, contentType, none); err == nil || !strings.Contains(err.Error(), "Windows line ends") {
			t.Errorf("%s: %v", contentType, err)
		}
		if err := Each(t.Context(), UnixLines(text), contentType, none); err != nil {
			t.Errorf("%s: %v", contentType, err)
		}
		if err := Each(t.Context(), []byte("bad {\n"), contentType, none); err == nil || strings.Contains(err.Error(), "Windows") {
			t.Errorf("%s: %v", contentType, err)
		}
	}
}
