package mutate

import (
	"bytes"
	"math/rand/v2"
	"strings"
)

// Targets returns the ways in which a list of targets from http_sd or file_sd can be wrong. The list in valid stays the
// same, so that a reader that has recovered has the same targets.
func Targets(valid []byte) []Content {
	return append(JSON(valid), Content{"a label of 17 MB in a list", func(*rand.Rand) Body {
		return Body{{Bytes: []byte(`[{"targets":["127.0.0.1:1"],"labels":{"x":"`)}, {bytes.Repeat([]byte("y"), 64<<10), longLabel >> 16}, {Bytes: []byte(`"}}]`)}}
	}}, Content{"thousands of groups", func(rnd *rand.Rand) Body {
		return Text("[" + strings.Repeat(`{"targets":["127.0.0.1:1"]},`, 1000+rnd.IntN(4000)) + `{"targets":[]}]`)
	}}, Content{"special labels", func(rnd *rand.Rand) Body {
		name := pick(rnd, "__scheme__", "__metrics_path__", "__scrape_interval__", "__scrape_timeout__", "__param_x", "__name__", "job", "", "\x00", "a b", "__address__")
		value := pick(rnd, "", "https", "ftp", "/%zz", "0s", "-1s", "1h", "\x00", "\xff", strings.Repeat("p", 5000), "a\r\nX: y")
		return Text(`[{"targets":["127.0.0.1:1"],"labels":{` + quote(name) + ":" + quote(value) + "}}]")
	}})
}

// Tokens returns the ways in which the answer of an OAuth2 token endpoint can be wrong.
func Tokens(valid []byte) []Content {
	return append(JSON(valid), Content{"fields of a token", func(rnd *rand.Rand) Body {
		token := pick(rnd, `"t"`, `""`, "null", "1", `["t"]`, `"a\r\nX-Evil: 1"`, `"\u0000"`, `"`+strings.Repeat("t", 20000)+`"`)
		expires := pick(rnd, "1", "0", "-1", `"2"`, "1e300", "9223372036854775807", `"soon"`, "null", "[]", "0.5")
		kind := pick(rnd, `"Bearer"`, `"bearer"`, `"mac"`, `""`, "null", "7", `"a\r\nb: c"`)
		return Text(`{"access_token":` + token + `,"expires_in":` + expires + `,"token_type":` + kind + `}`)
	}}, Content{"a token of 17 MB", func(*rand.Rand) Body {
		return Body{{Bytes: []byte(`{"access_token":"`)}, {bytes.Repeat([]byte("y"), 64<<10), longLabel >> 16}, {Bytes: []byte(`","token_type":"Bearer"}`)}}
	}}, Content{"an error of OAuth2", func(rnd *rand.Rand) Body {
		return Text(`{"error":` + pick(rnd, `"invalid_client"`, "1", `""`, `"`+strings.Repeat("e", 100000)+`"`) + `,"error_description":"\u001b[2J\n"}`)
	}})
}

// JSON returns the ways in which any JSON can be wrong. valid holds an object.
func JSON(valid []byte) []Content {
	return append(Bytes(func(*rand.Rand) []byte { return valid }),
		Content{"JSON nested deeply", func(rnd *rand.Rand) Body {
			open := pick(rnd, "[", `{"a":`, `[{"targets":`, `{"access_token":`)
			return Body{{[]byte(open), 1000 * (1 + rnd.IntN(50))}}
		}},
		Content{"JSON of another type", func(rnd *rand.Rand) Body {
			return Text(pick(rnd, "null", "0", `""`, "true", "[]", "{}", "[null]", "[[]]", `[{"targets":null}]`, `[{"targets":[1]}]`, `[{"labels":[]}]`, "1e999", "\ufeff[]", `{"a":1,"a":2}`, "<html></html>"))
		}},
		Content{"a value replaced", func(rnd *rand.Rand) Body {
			at := bytes.IndexByte(valid, ':') + 1
			return Text(string(valid[:at]) + pick(rnd, "null", "1e999", "[]", `"\ud800"`, `"\x"`, "-", strings.Repeat("9", 5000)) + string(valid[at:]))
		}})
}

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c < ' ':
			b.WriteString(`\u00` + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]))
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + `"`
}
