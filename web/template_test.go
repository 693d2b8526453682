package web

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
)

func TestTemplate(t *testing.T) {
	type inner struct{ Name string }
	type outer struct {
		inner
		Text  string
		On    bool
		Empty []inner
		Some  []inner
		In    inner
	}
	v := outer{inner: inner{"promoted"}, Text: `<a href="x">&'</a>`, On: true, Some: []inner{{"a"}, {"b"}}, In: inner{"c"}}
	for _, tc := range []struct{ page, want string }{
		{"plain } text { here", "plain } text { here"},
		{"{{.Text}}", "&lt;a href=&#34;x&#34;&gt;&amp;&#39;&lt;/a&gt;"},
		{`<p class="{{.Name}}">{{.In.Name}}</p>`, `<p class="promoted">c</p>`},
		{"{{if .On}}yes{{else}}no{{end}}.", "yes."},
		{"{{if .Empty}}yes{{else}}no{{end}}.", "no."},
		{"{{if .Empty}}yes{{end}}.", "."},
		{"{{if .Empty}}1{{else if .Some}}2{{else}}3{{end}}.", "2."},
		{"{{if .Empty}}1{{else if .Empty}}2{{else}}3{{end}}.", "3."},
		{"{{if .On}}{{if .Empty}}1{{else}}2{{end}}{{end}}.", "2."},
		{"{{with .In}}{{.Name}}{{end}}{{.Name}}", "cpromoted"},
		{"{{with .Text}}({{.}}){{end}}", "(&lt;a href=&#34;x&#34;&gt;&amp;&#39;&lt;/a&gt;)"},
		{"{{range .Some}}{{.Name}},{{else}}none{{end}}", "a,b,"},
		{"{{range .Empty}}{{.Name}},{{else}}none{{end}}", "none"},
	} {
		var b bytes.Buffer
		mustParse(tc.page).write(&b, reflect.ValueOf(v))
		if b.String() != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.page, &b, tc.want)
		}
	}
}

// What is wrong with a page is told when it is read, or shown.
func TestTemplateMistakes(t *testing.T) {
	for page, want := range map[string]string{
		"{{.A":                              "{{.A is not closed",
		"{{if .A}}x":                        `{{if .A}} ends with ""`,
		"x{{end}}y":                         `{{end}} without a beginning before "y"`,
		"{{if .A}}{{else}}x{{else}}{{end}}": `{{if .A}} ends with "else"`,
		"{{len .A}}":                        "{{len .A}} names no field",
		"{{if eq .A 1}}{{end}}":             "{{eq .A 1}} names no field",
		"{{.B}}":                            "struct { A int } has no field B",
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != want {
					t.Errorf("%s: panics with %s, want %s", page, got, want)
				}
			}()
			mustParse(page).write(new(bytes.Buffer), reflect.ValueOf(struct{ A int }{1}))
		}()
	}
}
