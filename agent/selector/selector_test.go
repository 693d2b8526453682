package selector

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseSelector(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "[]",
		" up ":                               `[__name__="up"]`,
		"up{}":                               `[__name__="up"]`,
		"{}":                                 "[]",
		"a:b{}":                              `[__name__="a:b"]`,
		`{__name__=~"node_.*", job="host",}`: `[__name__=~"node_.*" job="host"]`,
		`up{a!="x",b!~'y',c =~ ` + "`\\d+`" + ` }`:  `[__name__="up" a!="x" b!~"y" c=~"\\d+"]`,
		`{a="q\"uo\\te\n\u00e9", b='it\'s', c="}"}`: `[a="q\"uo\\te\né" b="it's" c="}"]`,
		`{a="Ünï"}`:             `[a="Ünï"]`,
		`{`:                     "error",
		`{a}`:                   "error",
		`{a=b}`:                 "error",
		`{a="b}`:                "error",
		`{a="b" c="d"}`:         "error",
		`{a="b"} x`:             "error",
		`{a=~"("}`:              "error",
		`{1a="b"}`:              "error",
		`1up`:                   "error",
		`{a="\q"}`:              "error",
		`sum(up)`:               "error",
		`{a=="b"}`:              "error",
		`{__name__="a"}{b="c"}`: "error",
	} {
		ms, err := Parse(text)
		got := fmt.Sprint(ms)
		if err != nil {
			got = "error"
			if !strings.Contains(err.Error(), "PromQL") {
				t.Errorf("%q: %v", text, err)
			}
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func FuzzParseSelector(f *testing.F) {
	f.Add(`up{a="b",c=~'d'}`)
	f.Fuzz(func(t *testing.T, text string) {
		ms, err := Parse(text)
		if err != nil {
			return
		}
		var parts []string
		for _, m := range ms {
			parts = append(parts, m.String())
		}
		again, err := Parse("{" + strings.Join(parts, ",") + "}")
		if err != nil || fmt.Sprint(again) != fmt.Sprint(ms) {
			t.Errorf("%q is %v, and that is %v, %v", text, ms, again, err)
		}
	})
}
