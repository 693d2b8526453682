package exposition

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// shownLine is a series that a parser has read.
type shownLine struct {
	text, value string
	labels      string
}

// readKnowing reads a body like a caller that expects the series of those texts in that order, and uses Take when draw
// returns true. It returns the entries before the end or the first error, and that error.
func readKnowing(t testing.TB, body string, expected []string, of func([]byte) uint64, draw func() bool) (all []shownLine, taken int, err error) {
	t.Helper()
	p, err := New([]byte(body), "text/plain", nil, textparse.ParserOptions{})
	if p == nil {
		return nil, 0, err
	}
	for {
		if len(expected) > 0 && draw() {
			if at, v, ok := p.Take(len(expected[0]), of([]byte(expected[0])), of); ok {
				var ls labels.Labels
				p.Labels(&ls)
				all = append(all, shownLine{expected[0], valueText(at, v), ls.String()})
				expected, taken = expected[1:], taken+1
				continue
			}
		}
		entry, err := p.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return all, taken, err
		}
		switch entry {
		case textparse.EntrySeries:
		case textparse.EntryHelp:
			name, help := p.Help()
			all = append(all, shownLine{"# HELP " + string(name), string(help), "{}"})
			continue
		case textparse.EntryType:
			name, kind := p.Type()
			all = append(all, shownLine{"# TYPE " + string(name), string(kind), "{}"})
			continue
		default:
			continue
		}
		text, at, v := p.Series()
		var ls labels.Labels
		p.Labels(&ls)
		all = append(all, shownLine{string(text), valueText(at, v), ls.String()})
		if i := slices.Index(expected, string(text)); i >= 0 {
			expected = expected[i+1:]
		}
	}
}

func valueText(at *int64, v float64) string {
	if at == nil {
		return fmt.Sprint(v)
	}
	return fmt.Sprint(v, " at ", *at)
}

// TestTake: a parser that passes over known series reads the same as one that does not, whichever it passes over,
// and the same mistake ends it.
func TestTake(t *testing.T) {
	seed := maphash.MakeSeed()
	of := func(text []byte) uint64 { return maphash.Bytes(seed, text) }
	page := "# HELP a Of a.\n# TYPE a counter\na{x=\"1\"} 1\na{x=\"2\"} 2.5 1700000000000\n{\"ü\",y=\"\\n\"} +Inf\n\n  a{x=\"3\"} 3\na 4\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"2\"} 3\nh_sum 3\n" +
		"# TYPE s summary\ns{quantile=\"0.50\"} 1\n# just a comment\ns_sum NaN\n# TYPE g gauge\ng 1\ng{le=\"1\"} 2\ng{x=\"}\"} -3\ng\t7\nend 1e3"
	never, always := func() bool { return false }, func() bool { return true }
	first, _, err := readKnowing(t, page, nil, of, never)
	if err != nil || len(first) != 15+5 {
		t.Fatalf("%v: %v", first, err)
	}
	var texts []string
	for _, s := range first {
		if s.text[0] != '#' {
			texts = append(texts, s.text)
		}
	}
	bodies := []string{
		page, page + "\n", strings.ReplaceAll(page, " 1\n", " 17\n"), strings.ReplaceAll(page, " 1\n", " 0x1p4\n"), strings.ReplaceAll(page, "g 1\n", "g 1_0\n"), strings.ReplaceAll(page, "g 1\n", "g {x=\"y\"} 2\n"),
		strings.ReplaceAll(page, "g 1\n", "g 1 2 3\n"), strings.ReplaceAll(page, "g 1\n", "g 1  5 \n"), strings.ReplaceAll(page, "g 1\n", "g  1\n"), strings.ReplaceAll(page, "g 1\n", "g 1\r\n"), strings.ReplaceAll(page, "g 1\n", "g nan +5\n"),
		strings.ReplaceAll(page, "g 1\n", "g inf -5\n"), strings.ReplaceAll(page, "a{x=\"2\"} 2.5 1700000000000\n", ""), strings.ReplaceAll(page, "TYPE g gauge", "TYPE g histogram"), strings.ReplaceAll(page, "# TYPE s summary\n", ""),
		strings.ReplaceAll(page, "g 1\n", "g 1\nnew{le=\"1\"} 1\nnew 2\ng 1\n"), "a{x=\"1\"} 1", "", "\n", strings.ReplaceAll(page, "g 1\n", "g 1 99999999999999999999\n"), strings.ReplaceAll(page, "g 1\n", "g 1 \n"), strings.ReplaceAll(page, "g 1\n", "g 1 -5\n"), strings.ReplaceAll(page, "g 1\n", "g \n"),
	}
	for _, about := range descriptions() {
		taken := texts[0] + " 1\n"
		bodies = append(bodies, taken+about+"\nb{le=\"1\"} 2\n", taken+about+"\n# TYPE b gauge\nb 2\n", taken+about)
	}
	for _, body := range bodies {
		want, _, wantErr := readKnowing(t, body, nil, of, never)
		random := rand.New(rand.NewPCG(1, 2))
		for round := range 20 {
			draw := func() bool { return random.IntN(3) > 0 }
			if round == 0 {
				draw = always
			}
			got, taken, gotErr := readKnowing(t, body, texts, of, draw)
			if !slices.Equal(got, want) || (gotErr == nil) != (wantErr == nil) {
				t.Fatalf("%q, %d taken:\n%v, %v, want\n%v, %v", body, taken, got, gotErr, want, wantErr)
			}
			if round == 0 && strings.HasPrefix(body, page) && taken < 7 {
				t.Errorf("only %d lines were taken", taken)
			}
		}
	}
}

// descriptions returns lines, some of them with mistakes, that describe a family.
func descriptions() (all []string) {
	for _, kind := range []string{"counter", "gauge", "histogram", "summary", "untyped", "unknown", "info", "", "gauge ", " gauge", "\tgauge", "Gauge"} {
		all = append(all, "# TYPE b "+kind, "# TYPE b\t"+kind, "# TYPE  b "+kind, "#\tTYPE b "+kind, "#  TYPE b "+kind)
	}
	for _, help := range []string{"of b", "", " ", "  two", "\\n a break", "a \\\\ b", "\"b\"", "ü", "\xff", "\r", "#", "# TYPE b gauge"} {
		all = append(all, "# HELP b "+help, "# HELP b\t"+help, "#HELP b "+help)
	}
	for _, name := range []string{"", "1b", "b1", "b:c", ":", "_", "b.c", "\"b\"", "\"b c\"", "{b}", "ü", "b\tc", "# TYPE b"} {
		all = append(all, "# HELP "+name+" of b", "# TYPE "+name+" gauge", "# HELP "+name, "# TYPE "+name)
	}
	return append(all, "# HELP", "# TYPE", "# UNIT b bytes", "# EOF", "#")
}
