package mutate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Request is a request of HTTP/1.1.
type Request struct {
	Method, Path, Host string
	Head               []Field
	Body               Body
}

func (r Request) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.Path, r.Host)
	for _, f := range r.Head {
		fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
	}
	return b.String()
}

// Script returns the correct request.
func (r Request) Script() Script {
	return Script{Steps: append([]Step{write(fmt.Sprintf("%sContent-Length: %d\r\n\r\n", r.head(), r.Body.Len()))}, r.Body.steps()...)}
}

// With returns a kind for each content of the body.
func (r Request) With(contents []Content) (all []Kind) {
	for _, c := range contents {
		all = append(all, Kind{"content: " + c.Name, func(rnd *rand.Rand) Script {
			one := r
			one.Body = c.Make(rnd)
			return one.Script()
		}})
	}
	return all
}

// Requests returns the ways in which a request of HTTP/1.1 can be wrong; valid makes a correct one.
func Requests(valid func(rnd *rand.Rand) Request) []Kind {
	var all []Kind
	for _, c := range Bytes(func(rnd *rand.Rand) []byte { return flatten(valid(rnd).Script()) }) {
		all = append(all, Kind{"HTTP: " + c.Name, func(rnd *rand.Rand) Script { return Script{Steps: c.Make(rnd).steps(), End: pick(rnd, GoOn, Close)} }})
	}
	return slices.Concat(all, requestHeads(valid), requestBodies(valid), breaks())
}

func requestHeads(valid func(rnd *rand.Rand) Request) []Kind {
	change := func(name string, f func(rnd *rand.Rand, r *Request)) Kind {
		return Kind{name, func(rnd *rand.Rand) Script {
			r := valid(rnd)
			r.Head = slices.Clone(r.Head)
			f(rnd, &r)
			return r.Script()
		}}
	}
	header := func(name string, f func(rnd *rand.Rand) Field) Kind {
		return change(name, func(rnd *rand.Rand, r *Request) {
			r.Head = slices.Insert(r.Head, rnd.IntN(len(r.Head)+1), f(rnd))
		})
	}
	return []Kind{
		change("another method", func(rnd *rand.Rand, r *Request) {
			r.Method = pick(rnd, "GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PRI", "get", "", "P\x00ST", strings.Repeat("M", 3000))
		}),
		change("another path", func(rnd *rand.Rand, r *Request) {
			r.Path = pick(rnd, "", "*", "/", "//", "/../../etc/passwd", r.Path+"/..", r.Path+"?"+strings.Repeat("a=b&", 5000), r.Path+"/%zz", r.Path+"%00", r.Path+"/"+strings.Repeat("x/y/", 500), "http://127.0.0.1"+r.Path, r.Path+"#f", r.Path+";x", "\xff"+r.Path, strings.ToUpper(r.Path))
		}),
		change("another host", func(rnd *rand.Rand, r *Request) {
			r.Host = pick(rnd, "", "example.com", "localhost:99999", "[::1", "127.0.0.1:0", "a b", "\xff", "127.0.0.1\r\nHost: example.com", strings.Repeat("h", 5000))
		}),
		header("a header that is none", func(rnd *rand.Rand) Field {
			return pick(rnd, Field{"", "x"}, Field{"X Y", "z"}, Field{"X", "a\x00b"}, Field{"X", "a\r\n folded"}, Field{"\xff", "\xff"}, Field{"nonsense\r\nX", "y"})
		}),
		header("another content type or encoding", func(rnd *rand.Rand) Field {
			return pick(rnd, Field{"Content-Type", pick(rnd, "", "text/html", "application/json", "application/x-protobuf;proto=io.prometheus.write.v2.Request", "application/openmetrics-text; version=1.0.0", "multipart/form-data; boundary=", ";;")},
				Field{"Content-Encoding", pick(rnd, "snappy", "gzip", "zstd", "br", "gzip, gzip", "identity", "x")})
		}),
		header("a header that asks for something", func(rnd *rand.Rand) Field {
			return pick(rnd, Field{"Expect", "100-continue"}, Field{"Expect", "nonsense"}, Field{"Upgrade", "h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"}, Field{"Upgrade", "websocket\r\nConnection: Upgrade"}, Field{"Connection", "close"},
				Field{"Range", "bytes=0-18446744073709551615"}, Field{"Accept-Encoding", strings.Repeat("gzip;q=0.1, ", 500)}, Field{"Accept", strings.Repeat("text/plain;q=0.1;version=0.0.4,", 300)}, Field{"If-Modified-Since", "x"}, Field{"Origin", "null"}, Field{"Sec-Fetch-Site", "cross-site"}, Field{"Authorization", "Basic " + strings.Repeat("A", 5000)}, Field{"Grpc-Timeout", "1n"})
		}),
		header("a header of many kilobytes", func(rnd *rand.Rand) Field { return Field{"X-Much", strings.Repeat("m", 1<<(10+rnd.IntN(11)))} }),
		{"headers without end", func(rnd *rand.Rand) Script {
			return Script{Steps: []Step{write(valid(rnd).head()), {Bytes: []byte("X-Much: more\r\n"), Times: Endless, Pause: pace}}}
		}},
	}
}

func requestBodies(valid func(rnd *rand.Rand) Request) []Kind {
	// rest is the head of a correct request with something inserted before its end, and a separate body.
	rest := func(name, head string, end End, steps func(rnd *rand.Rand, body []byte) []Step) Kind {
		return Kind{name, func(rnd *rand.Rand) Script {
			r := valid(rnd)
			return Script{Steps: append([]Step{write(r.head() + head + "\r\n")}, steps(rnd, r.Body.Bytes())...), End: end}
		}}
	}
	length := func(name string, end End, f func(rnd *rand.Rand, n int) string) Kind {
		return Kind{name, func(rnd *rand.Rand) Script {
			r := valid(rnd)
			return Script{Steps: append([]Step{write(r.head() + "Content-Length: " + f(rnd, r.Body.Len()) + "\r\n\r\n")}, r.Body.steps()...), End: end}
		}}
	}
	const chunked = "Transfer-Encoding: chunked\r\n"
	return []Kind{
		{"pipelined", func(rnd *rand.Rand) Script {
			var s Script
			for range 2 + rnd.IntN(20) {
				s.Steps = append(s.Steps, valid(rnd).Script().Steps...)
			}
			return s
		}},
		{"left before the answer", func(rnd *rand.Rand) Script {
			s := valid(rnd).Script()
			s.End = pick(rnd, Close, Reset)
			return s
		}},
		{"the answer is not read", func(rnd *rand.Rand) Script {
			s := valid(rnd).Script()
			return Script{Steps: []Step{{Bytes: flatten(s), Times: 10}}, End: HalfClose}
		}},
		length("less than the content length", Hold, func(rnd *rand.Rand, n int) string { return fmt.Sprint(n + 1 + rnd.IntN(1000)) }),
		length("less than the content length, and closed", Close, func(rnd *rand.Rand, n int) string { return fmt.Sprint(n + 1 + rnd.IntN(1000)) }),
		length("more than the content length", GoOn, func(rnd *rand.Rand, n int) string { return fmt.Sprint(rnd.IntN(n + 1)) }),
		length("a content length that is none", GoOn, func(rnd *rand.Rand, _ int) string {
			return pick(rnd, "-1", "", "9223372036854775807", "9223372036854775808", "1\r\nContent-Length: 2", "0x5", "1\r\nTransfer-Encoding: chunked")
		}),
		rest("right chunks", chunked, GoOn, func(_ *rand.Rand, body []byte) []Step {
			return []Step{write(fmt.Sprintf("%x;a=b\r\n%s\r\n0\r\nX-Trailer: yes\r\n\r\n", len(body), body))}
		}),
		rest("wrong sizes of chunks", chunked, GoOn, func(rnd *rand.Rand, body []byte) []Step {
			size := pick(rnd, "ffffffffffffffff", "-1", "zz", "", fmt.Sprintf("%x", len(body)+1), fmt.Sprintf("%x", len(body)/2), strings.Repeat("0", 100)+"1", "1;"+strings.Repeat("e", 5000))
			return []Step{write(size + "\r\n" + string(body) + pick(rnd, "\r\n0\r\n\r\n", "0\r\n\r\n", "\r\n", ""))}
		}),
		rest("chunks without end", chunked, Close, func(*rand.Rand, []byte) []Step {
			return []Step{{Bytes: []byte("8\r\n# long\n\n\r\n"), Times: Endless, Pause: pace}}
		}),
		rest("a byte at a time", "Content-Length: 100\r\n", Close, func(*rand.Rand, []byte) []Step {
			return []Step{{Bytes: []byte("#"), Times: 50, Pause: 20 * time.Millisecond}}
		}),
		rest("a stop inside the body", "Content-Length: 100000\r\n", Hold, func(_ *rand.Rand, body []byte) []Step { return []Step{{Bytes: body[:len(body)/2]}} }),
		rest("a reset inside the body", "Content-Length: 100000\r\n", Reset, func(_ *rand.Rand, body []byte) []Step { return []Step{{Bytes: body[:len(body)/2]}} }),
		rest("a bomb of gzip", "Content-Encoding: gzip\r\n"+chunked, GoOn, func(rnd *rand.Rand, _ []byte) []Step {
			bomb := Body{{[]byte(strings.Repeat(pick(rnd, "\n", "{", "\x00"), 1<<20)), 64}}.Gzip().Bytes()
			return []Step{write(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(bomb), bomb))}
		}),
	}
}
