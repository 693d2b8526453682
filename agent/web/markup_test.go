package web

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// fill puts text into every string that v holds, two elements into each list, and yes into each flag.
func fill(v reflect.Value, text string, yes bool) {
	if !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(yes)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), text, yes)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), text, yes)
		}
	}
}

// shape returns what a browser reads on a page but for words: elements, and names of attributes; and apart from
// that, each text and each value.
func shape(t *testing.T, body []byte) (tags, words []string) {
	t.Helper()
	in := html.NewTokenizer(bytes.NewReader(body))
	for {
		switch kind := in.Next(); kind {
		case html.ErrorToken:
			return tags, words
		case html.TextToken:
			words = append(words, string(in.Text()))
		default:
			one := in.Token()
			tag := kind.String() + " " + one.Data
			for _, a := range one.Attr {
				tag += " " + a.Key
				words = append(words, a.Key+"="+a.Val)
			}
			tags = append(tags, tag)
		}
	}
}

// TestHostileWordsStayWords: whatever stands in any string that the pages are made of, a browser finds the same
// elements and attributes, the text as it is, and no address that is not this server's.
func TestHostileWordsStayWords(t *testing.T) {
	for name, screen := range map[string]screenful{"overview": overview(), "scraped": scraped(), "device": deviceScreen(), "search": searchScreen()} {
		for _, yes := range []bool{false, true} {
			page := func(text string) []byte {
				var v view
				fill(reflect.ValueOf(&v).Elem(), text, yes)
				for i := range v.Things { // half of them are of targets, which have commands
					v.Things[i].Kind = []string{"target", text}[i%2]
				}
				return screen.whole(v)
			}
			want, _ := shape(t, page("plain"))
			if len(want) < 40 {
				t.Fatalf("%s has %d elements only", name, len(want))
			}
			for _, hostile := range []string{
				`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</title><script>`, `--><b>`, `<!--`, `]]>`, `&lt;b&gt;`, "a\x00b",
				`javascript:alert(1)`, `//evil.example/x`, `/\evil.example`, "\u202e<i>", "a b#c?d=e&f=%41+é", `{{.}}`, "</main>", "<svg onload=alert(1)>",
			} {
				tags, words := shape(t, page(hostile))
				if diff := cmp.Diff(want, tags); diff != "" {
					t.Errorf("%s with %q (-want +got):\n%s", name, hostile, diff)
				}
				if !slices.ContainsFunc(words, func(w string) bool {
					return strings.Contains(w, strings.NewReplacer("\x00", "\uFFFD", "\u202e", "\uFFFD").Replace(hostile))
				}) {
					t.Errorf("%s with %q: the words are not on the page", name, hostile)
				}
				for _, w := range words {
					key, address, ok := strings.Cut(w, "=")
					if !ok || key != "href" && key != "src" || slices.Contains([]string{string(iconOK), string(iconWarning), string(iconError)}, address) {
						continue
					}
					if u, err := url.Parse(address); err != nil || u.Scheme != "" || u.Host != "" || strings.Contains(address, `\`) {
						t.Errorf("%s with %q: the address %q", name, hostile, address)
					}
				}
			}
		}
	}
}

// TestFragmentLeadsToItsName: a browser decodes the part after # to the element's id.
func TestFragmentLeadsToItsName(t *testing.T) {
	for _, name := range []string{"mimir", "a b", `"quoted"`, "50%", "é/ж", "a+b&c", "~._-", "#"} {
		var p page
		p.encoded(name)
		if got, err := url.PathUnescape(p.b.String()); err != nil || got != name || strings.ContainsAny(p.b.String(), ` "'<>&#`) {
			t.Errorf("%q becomes %q, which is read as %q (%v)", name, p.b.String(), got, err)
		}
	}
}

// TestOnlyConstantsAreMarkup: no file of the package turns a text into markup.
func TestOnlyConstantsAreMarkup(t *testing.T) {
	files, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if to, ok := call.Fun.(*ast.Ident); ok && to.Name == "markup" {
					t.Errorf("%s converts a text to markup", name)
				}
			}
			return true
		})
	}
}

// TestAddressesElsewhere: only https leads elsewhere.
func TestAddressesElsewhere(t *testing.T) {
	for address, want := range map[string]string{
		"https://docs.example/hwsagent": "https://docs.example/hwsagent", "http://docs.example": "#", "javascript:alert(1)": "#", "//docs.example": "#", "https:": "#", `https://docs.example/"x`: "https://docs.example/&#34;x",
	} {
		var p page
		if p.abroad(address); p.b.String() != want {
			t.Errorf("%q becomes %q, want %q", address, p.b.String(), want)
		}
	}
}
