package mutate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Field is a header.
type Field struct{ Name, Value string }

// Answer is an answer of HTTP/1.1.
type Answer struct {
	Status int
	Head   []Field
	Body   Body
}

// pace is the pause between pieces of endless messages: short enough to be quick, without being a load by itself.
const pace = 2 * time.Millisecond

func (a Answer) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", a.Status, http.StatusText(a.Status))
	for _, f := range a.Head {
		fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
	}
	return b.String()
}

func write(text string) Step { return Step{Bytes: []byte(text)} }

// Script returns the correct answer.
func (a Answer) Script() Script {
	if a.Status == http.StatusNoContent {
		return Script{Steps: []Step{write(a.head() + "\r\n")}}
	}
	return Script{Steps: append([]Step{write(fmt.Sprintf("%sContent-Length: %d\r\n\r\n", a.head(), a.Body.Len()))}, a.Body.steps()...)}
}

// Gzipped returns the answer with its body compressed.
func (a Answer) Gzipped() Answer {
	a.Head = append(slices.Clone(a.Head), Field{"Content-Encoding", "gzip"})
	a.Body = a.Body.Gzip()
	return a
}

// With returns a kind for each content of the body. Every second one is compressed.
func (a Answer) With(contents []Content, compress bool) (all []Kind) {
	for _, c := range contents {
		all = append(all, Kind{"content: " + c.Name, func(rnd *rand.Rand) Script {
			one := a
			one.Body = c.Make(rnd)
			if compress && rnd.IntN(2) == 0 {
				one = one.Gzipped()
			}
			return one.Script()
		}})
	}
	return all
}

// Answers returns the ways in which an answer of HTTP/1.1 can be wrong; valid makes a correct one.
func Answers(valid func(rnd *rand.Rand) Answer) []Kind {
	var all []Kind
	for _, c := range Bytes(func(rnd *rand.Rand) []byte { return flatten(valid(rnd).Script()) }) {
		all = append(all, Kind{"HTTP: " + c.Name, func(rnd *rand.Rand) Script {
			return Script{Steps: c.Make(rnd).steps(), End: pick(rnd, Close, Close, Hold)}
		}})
	}
	return slices.Concat(all, answerHeads(valid), answerBodies(valid), breaks())
}

func flatten(s Script) []byte {
	var b bytes.Buffer
	for _, step := range s.Steps {
		b.Write(bytes.Repeat(step.Bytes, max(1, step.Times)))
	}
	return b.Bytes()
}

func answerHeads(valid func(rnd *rand.Rand) Answer) []Kind {
	// before inserts something before the answer; instead replaces it.
	before := func(name string, f func(rnd *rand.Rand) string) Kind {
		return Kind{name, func(rnd *rand.Rand) Script {
			s := valid(rnd).Script()
			s.Steps = slices.Insert(s.Steps, 0, write(f(rnd)))
			return s
		}}
	}
	instead := func(name string, end End, f func(rnd *rand.Rand) string) Kind {
		return Kind{name, func(rnd *rand.Rand) Script { return Script{Steps: []Step{write(f(rnd))}, End: end} }}
	}
	forever := func(name, head string, piece func(rnd *rand.Rand) string) Kind {
		return Kind{name, func(rnd *rand.Rand) Script {
			return Script{Steps: []Step{write(head), {Bytes: []byte(piece(rnd)), Times: Endless, Pause: pace}}}
		}}
	}
	headers := func(name string, f func(rnd *rand.Rand) Field) Kind {
		return Kind{name, func(rnd *rand.Rand) Script {
			a := valid(rnd)
			a.Head = slices.Insert(slices.Clone(a.Head), rnd.IntN(len(a.Head)+1), f(rnd))
			return a.Script()
		}}
	}
	return []Kind{
		instead("101, the connection stays open", Hold, func(rnd *rand.Rand) string {
			return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: " + pick(rnd, "x", "websocket", "h2c", "TLS/1.0") + "\r\nConnection: Upgrade\r\n\r\n"
		}),
		instead("101 and something after it", Hold, func(rnd *rand.Rand) string {
			return "HTTP/1.1 101 Switching Protocols\r\n\r\n" + string(flatten(valid(rnd).Script()))
		}),
		before("1xx before it", func(rnd *rand.Rand) string {
			return strings.Repeat(fmt.Sprintf("HTTP/1.1 %d Early\r\nLink: </a>\r\n\r\n", pick(rnd, 100, 102, 103, 104, 199)), 1+rnd.IntN(7))
		}),
		forever("1xx without end", "", func(*rand.Rand) string { return "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n" }),
		{"any status", func(rnd *rand.Rand) Script {
			a := valid(rnd)
			a.Status = pick(rnd, 204, 205, 206, 304, 400, 408, 413, 429, 500, 502, 503, 504, 599, 200+rnd.IntN(100), 600+rnd.IntN(400))
			return Script{Steps: append([]Step{write(fmt.Sprintf("%sContent-Length: %d\r\n\r\n", a.head(), a.Body.Len()))}, a.Body.steps()...), End: pick(rnd, GoOn, Close)}
		}},
		instead("a status line that is none", Close, func(rnd *rand.Rand) string {
			return pick(rnd, "HTTP/1.1 \r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n", "HTTP/1.1 -1 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1\r\n\r\n", "ICY 200 OK\r\n\r\n", "\r\n\r\n", "200\r\n\r\n", "SSH-2.0-x\r\n")
		}),
		instead("HTTP/1.0 and 0.9", Close, func(rnd *rand.Rand) string {
			a := valid(rnd)
			return pick(rnd, "HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", "") + string(a.Body.Bytes())
		}),
		forever("headers without end", "HTTP/1.1 200 OK\r\n", func(rnd *rand.Rand) string { return fmt.Sprintf("X-Much: %0*d\r\n", 1+rnd.IntN(4000), 0) }),
		forever("a header without end", "HTTP/1.1 200 OK\r\nX-Much: ", func(*rand.Rand) string { return strings.Repeat("m", 4<<10) }),
		headers("a header that is none", func(rnd *rand.Rand) Field {
			return pick(rnd, Field{"", "x"}, Field{"X Y", "z"}, Field{"X", "a\x00b"}, Field{"X", "a\rb"}, Field{"X", "a\r\n folded"}, Field{"\xff", "\xff"}, Field{"nonsense\r\nX", "y"})
		}),
		headers("a header twice or odd", func(rnd *rand.Rand) Field {
			return pick(rnd, Field{"Content-Length", pick(rnd, "-1", "1e3", "0x10", "99999999999999999999", "", "5, 6", "+7")}, Field{"Transfer-Encoding", pick(rnd, "chunked", "gzip", "chunked, chunked", "identity", "\x0bchunked")},
				Field{"Content-Encoding", pick(rnd, "br", "gzip, gzip", "zstd", "gzip", "x")}, Field{"Connection", pick(rnd, "close", "upgrade", "content-length, close")}, Field{"Trailer", "Content-Length"},
				Field{"Date", pick(rnd, "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "soon", "-1")}, Field{"Retry-After", pick(rnd, "-1", "0", "1", "x", "1.5")}, Field{"Content-Length", "99999999"})
		}),
		headers("another content type", func(rnd *rand.Rand) Field {
			return Field{"Content-Type", pick(rnd, "", "text/html", "text/plain; version=9", "application/openmetrics-text", "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=x", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited", "application/vnd.google.protobuf; encoding=compact-text", ";;;", "a/b; c=\"", strings.Repeat("t", 5000))}
		}),
		headers("a header of many kilobytes", func(rnd *rand.Rand) Field { return Field{"X-Much", strings.Repeat("m", 1<<(10+rnd.IntN(9)))} }),
		{"the answer twice", func(rnd *rand.Rand) Script {
			s := valid(rnd).Script()
			s.Steps = append(s.Steps, s.Steps...)
			return s
		}},
	}
}

func answerBodies(valid func(rnd *rand.Rand) Answer) []Kind {
	length := func(name string, end End, f func(rnd *rand.Rand, n int) string) Kind {
		return Kind{name, func(rnd *rand.Rand) Script {
			a := valid(rnd)
			a.Status = http.StatusOK
			return Script{Steps: append([]Step{write(a.head() + "Content-Length: " + f(rnd, a.Body.Len()) + "\r\n\r\n")}, a.Body.steps()...), End: end}
		}}
	}
	// rest is the head of a correct answer with something inserted before its end, and a separate body.
	rest := func(name, head string, end End, steps func(rnd *rand.Rand, body []byte) []Step) Kind {
		return Kind{name, func(rnd *rand.Rand) Script {
			a := valid(rnd)
			a.Status = http.StatusOK
			return Script{Steps: append([]Step{write(a.head() + head + "\r\n")}, steps(rnd, a.Body.Bytes())...), End: end}
		}}
	}
	const chunked = "Transfer-Encoding: chunked\r\n"
	endless := func(piece string) func(*rand.Rand, []byte) []Step {
		return func(*rand.Rand, []byte) []Step {
			return []Step{{Bytes: []byte(piece), Times: Endless, Pause: pace}}
		}
	}
	return []Kind{
		length("less than the content length", Close, func(rnd *rand.Rand, n int) string { return fmt.Sprint(n + 1 + rnd.IntN(1000)) }),
		length("less than the content length, and it stays open", Hold, func(rnd *rand.Rand, n int) string { return fmt.Sprint(n + 1 + rnd.IntN(1000)) }),
		length("more than the content length", GoOn, func(rnd *rand.Rand, n int) string { return fmt.Sprint(rnd.IntN(n + 1)) }),
		length("a content length that is none", Close, func(rnd *rand.Rand, _ int) string {
			return pick(rnd, "-1", "", "9223372036854775807", "9223372036854775808", "1 2", "1\r\nContent-Length: 2", "0x5", "１")
		}),
		rest("right chunks", chunked, GoOn, func(rnd *rand.Rand, body []byte) (steps []Step) {
			for len(body) > 0 {
				n := 1 + rnd.IntN(len(body))
				steps = append(steps, write(fmt.Sprintf("%x;ext=\"%d\"\r\n%s\r\n", n, n, body[:n])))
				body = body[n:]
			}
			return append(steps, write("0\r\nX-Trailer: yes\r\n\r\n"))
		}),
		rest("wrong sizes of chunks", chunked, Close, func(rnd *rand.Rand, body []byte) []Step {
			size := pick(rnd, "ffffffffffffffff", "7fffffffffffffff", "-1", "zz", "", "0x10", fmt.Sprintf("%x", len(body)+1), fmt.Sprintf("%x", len(body)/2), strings.Repeat("0", 100)+"1", "00000000000000001", "1;"+strings.Repeat("e", 5000))
			return []Step{write(size + "\r\n" + string(body) + pick(rnd, "\r\n0\r\n\r\n", "0\r\n\r\n", "\r\n", "", "\n0\n\n"))}
		}),
		rest("no last chunk", chunked, Hold, func(_ *rand.Rand, body []byte) []Step {
			return []Step{write(fmt.Sprintf("%x\r\n%s\r\n", len(body), body))}
		}),
		rest("chunks without end", chunked, Close, endless("400\r\n"+strings.Repeat("# long\n\n", 128)+"\r\n")),
		rest("empty lines in chunks of a byte, without end", chunked, Close, endless(strings.Repeat("1\r\n\n\r\n", 500))),
		rest("a chunk extension without end", chunked, Close, endless(";"+strings.Repeat("e", 4<<10))),
		rest("trailers without end", chunked+"Trailer: X-Much\r\n", Close, func(rnd *rand.Rand, body []byte) []Step {
			return append([]Step{write("0\r\n")}, endless("X-Much: more\r\n")(rnd, body)...)
		}),
		rest("a body without end", "", Close, endless(strings.Repeat("mutant_endless 1\n", 2<<10))),
		rest("a line without end", "", Close, endless(strings.Repeat("x", 32<<10))),
		rest("zeros of gzip without end", "Content-Encoding: gzip\r\n", Close, func(*rand.Rand, []byte) []Step {
			zeros := Body{{make([]byte, 1<<20), 8}}.Gzip().Bytes()
			return []Step{{Bytes: zeros, Times: Endless, Pause: 10 * pace}}
		}),
		rest("a bomb of gzip", "Content-Encoding: gzip\r\n", Close, func(rnd *rand.Rand, _ []byte) []Step {
			return Body{{bytes.Repeat([]byte(pick(rnd, "\n", "a", "# x\n", "{", "\x00")), 1<<20), 32}}.Gzip().steps()
		}),
		rest("damaged gzip", "Content-Encoding: gzip\r\n", Close, func(rnd *rand.Rand, body []byte) []Step {
			return []Step{{Bytes: Damage(rnd, Of(body).Gzip().Bytes())}}
		}),
		rest("not gzip at all", "Content-Encoding: gzip\r\n", Close, func(_ *rand.Rand, body []byte) []Step { return []Step{{Bytes: body}} }),
		rest("a byte at a time", "", Close, func(_ *rand.Rand, body []byte) (steps []Step) {
			for _, c := range body[:min(len(body), 200)] {
				steps = append(steps, Step{Bytes: []byte{c}, Pause: 20 * time.Millisecond})
			}
			return steps
		}),
		rest("no byte after the head", "", Hold, func(*rand.Rand, []byte) []Step { return nil }),
		rest("a stop inside the body", "", Hold, func(rnd *rand.Rand, body []byte) []Step { return []Step{{Bytes: body[:rnd.IntN(len(body)+1)]}} }),
		rest("closed for writing inside the body", "", HalfClose, func(rnd *rand.Rand, body []byte) []Step { return []Step{{Bytes: body[:rnd.IntN(len(body)+1)]}} }),
		rest("a reset inside the body", "", Reset, func(rnd *rand.Rand, body []byte) []Step { return []Step{{Bytes: body[:rnd.IntN(len(body)+1)]}} }),
	}
}

// breaks end the connection, or leave it open, without a message.
func breaks() []Kind {
	end := func(name string, s Script) Kind { return Kind{name, func(*rand.Rand) Script { return s }} }
	return []Kind{
		end("closed", Script{End: Close}),
		end("a reset", Script{End: Reset}),
		end("silence", Script{End: Hold}),
		end("closed for writing", Script{End: HalfClose}),
		{"bytes that are no TLS, below it", func(rnd *rand.Rand) Script {
			return Script{Steps: []Step{{Bytes: noise(rnd), Raw: true}}, End: pick(rnd, Close, Hold)}
		}},
		{"a record of TLS cut off", func(rnd *rand.Rand) Script {
			return Script{Steps: []Step{{Bytes: append([]byte{0x17, 3, 3, 0x40, 0}, make([]byte, rnd.IntN(500))...), Raw: true}}, End: pick(rnd, Close, Hold)}
		}},
		{"a record of TLS that is too long, or an alert", func(rnd *rand.Rand) Script {
			return Script{Steps: []Step{{Bytes: pick(rnd, []byte{0x17, 3, 3, 0xff, 0xff}, []byte{0x15, 3, 3, 0, 2, 2, 40}, []byte{0x15, 3, 3, 0, 2, 1, 0}, []byte{0x16, 3, 3, 0, 4, 0, 0, 0, 0}, []byte{0x99, 9, 9, 0, 0}), Raw: true}}, End: pick(rnd, Close, Hold)}
		}},
	}
}
