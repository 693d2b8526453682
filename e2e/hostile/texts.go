package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"time"
)

// bodies come with a 503, and are unreadable.
func bodies() []Behaviour {
	text := func(name, head, body string) Behaviour {
		return Behaviour{Name: name + " as an error", State: retrying, Says: "503", answer: func(x *Exchange) bool { return x.status(503, head, body) }}
	}
	rest := func(name, after string, then func(x *Exchange) bool) Behaviour {
		return Behaviour{Name: name, State: retrying, Says: "503", answer: func(x *Exchange) bool {
			return x.drop() && x.say("HTTP/1.1 503 Service Unavailable\r\n"+after) && then(x)
		}}
	}
	closes := func(*Exchange) bool { return false }
	return []Behaviour{
		text("a gzip bomb", "Content-Encoding: gzip\r\n", bomb()),
		text("control characters", "", "\x1b[2J\x1b]0;owned\x07\x00\r\nlevel=error msg=\"a line of its own\"\r\n\x7f\u202e\u2028"),
		text("a web page of 1 MB", "Content-Type: text/html\r\n", "<!DOCTYPE html><html><head><title>Down &lt;for&gt; repair</title>"+strings.Repeat("<p>sorry</p>", 1<<17)),
		text("a script", "Content-Type: text/html\r\n", "<script>alert(document.cookie)</script>"),
		text("binary data", "", strings.Repeat("\x00\xff\xfe\x80", 1<<14)),
		text("one line of 1 MB", "", strings.Repeat("long", 1<<18)),
		text("text that is not UTF-8", "Content-Type: text/plain; charset=latin1\r\n", "d\xe9sol\xe9"),
		rest("a body without end", "\r\n", func(x *Exchange) bool { return x.repeat(strings.Repeat("x", 64<<10), atOnce) }),
		rest("chunks without end", "Transfer-Encoding: chunked\r\n\r\n", func(x *Exchange) bool { return x.repeat("4\r\nlong\r\n", atOnce) }),
		rest("chunks that are none", "Transfer-Encoding: chunked\r\n\r\nzz\r\nnonsense\r\n", closes),
		rest("a chunk of 16 EB", "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nlong", closes),
		rest("a chunk extension without end", "Transfer-Encoding: chunked\r\n\r\n4;", func(x *Exchange) bool { return x.repeat(strings.Repeat("e", 4<<10), atOnce) }),
		rest("trailers without end", "Transfer-Encoding: chunked\r\nTrailer: X-Much\r\n\r\n0\r\n", func(x *Exchange) bool { return x.repeat("X-Much: more\r\n", atOnce) }),
		rest("less than the content length", "Content-Length: 1000\r\n\r\nshort", closes),
		rest("more than the content length", "Content-Length: 5\r\n\r\nlonger than that", closes),
		rest("a byte of the body a second", "Content-Length: 1000\r\n\r\n", func(x *Exchange) bool { return x.repeat("t", time.Second) }),
		rest("a hang inside the body", "Content-Length: 1000\r\n\r\nwell, ", (*Exchange).wait),
		rest("a reset inside the body", "Content-Length: 1000\r\n\r\nwell, ", (*Exchange).reset),
		rest("an encoding that nobody knows", "Content-Encoding: br, zstd, x-own\r\nContent-Length: 4\r\n\r\n\x01\x02\x03\x04", func(*Exchange) bool { return true }),
	}
}

// bomb returns 100 MB of zeros compressed to 100 KB.
func bomb() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for zeros := make([]byte, 1<<20); b.Len() < 100<<10; {
		_, _ = z.Write(zeros) // into memory
	}
	_ = z.Close()
	return b.String()
}

// heads are wrong before the body begins. Bytes that are not HTTP are not an answer.
func heads() []Behaviour {
	says := func(name, says, text string, then func(x *Exchange) bool) Behaviour {
		return Behaviour{Name: name, State: retrying, Says: says, answer: func(x *Exchange) bool { return x.store(true) && x.say(text) && then(x) }}
	}
	closes := func(*Exchange) bool { return false }
	ok := func(name, head string) Behaviour {
		return Behaviour{Name: name, answer: func(x *Exchange) bool {
			return x.store(false) && x.say("HTTP/1.1 200 OK\r\n"+x.head()+head+"Content-Length: 0\r\n\r\n")
		}}
	}
	return []Behaviour{
		says("headers without end", "", "HTTP/1.1 200 OK\r\n", func(x *Exchange) bool { return x.repeat(fmt.Sprintf("X-Much: %01000d\r\n", 0), atOnce) }),
		says("one header without end", "", "HTTP/1.1 200 OK\r\nX-Much: ", func(x *Exchange) bool { return x.repeat(strings.Repeat("m", 64<<10), atOnce) }),
		says("a status line without end", "", "HTTP/1.1 200 ", func(x *Exchange) bool { return x.repeat(strings.Repeat("OK", 32<<10), atOnce) }),
		says("a header without a colon", "malformed", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", closes),
		says("a status of two digits", "malformed", "HTTP/1.1 20 OK\r\n\r\n", closes),
		says("a status that is no number", "malformed", "HTTP/1.1 OK 200\r\n\r\n", closes),
		says("another protocol's version", "malformed", "HTTP/x.y 200 OK\r\n\r\n", closes),
		says("no HTTP at all", "malformed", "SSH-2.0-OpenSSH_9.2p1\r\n\r\n", closes),
		says("binary data as an answer", "malformed", "\x00\x01\x02\x03\r\n\r\n", closes),
		says("an empty line", "malformed", "\r\n\r\n", closes),
		says("a content length that is negative", "", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", closes),
		says("two content lengths", "", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", closes),
		says("an unknown transfer encoding", "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", closes),
		ok("Set-Cookie", "Set-Cookie: session=steal; Path=/; Max-Age=86400\r\nSet-Cookie: other=1\r\n"),
		ok("a date of another century", "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"),
		ok("a thousand headers", strings.Repeat("X-Many: many\r\n", 1000)),
		ok("Connection: close", "Connection: close\r\n"),
		ok("Upgrade", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
	}
}
