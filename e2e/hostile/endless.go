package hostile

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// endless answers have a status and never end, while their connection stays open: each class of
// status, with each way not to end.
func endless() []Behaviour {
	ways := []struct {
		name string
		head string
		then func(x *Exchange) bool
	}{
		{"and a hang inside the body", "Content-Length: 1000\r\n\r\nwell, ", (*Exchange).wait},
		{"and a byte of the body a second", "Content-Length: 1000\r\n\r\n", drip},
		{"and a hang inside a chunk", "Transfer-Encoding: chunked\r\n\r\nfff\r\nwell, ", (*Exchange).wait},
		{"and a byte of a chunk a second", "Transfer-Encoding: chunked\r\n\r\nfff\r\n", drip},
		{"and a body without a length", "\r\nwell, ", (*Exchange).wait},
		{"and a body without a length, a byte a second", "\r\n", drip},
	}
	var all []Behaviour
	for _, class := range []struct {
		code  int
		state string
	}{{200, ""}, {307, held}, {401, held}, {503, retrying}} {
		for _, way := range ways {
			says := fmt.Sprint(class.code)
			if class.state == "" {
				says = ""
			}
			all = append(all, Behaviour{Name: fmt.Sprintf("%d %s", class.code, way.name), State: class.state, Says: says, answer: func(x *Exchange) bool {
				took, head := false, ""
				if class.state == "" {
					took, head = x.store(false), x.head()
				} else {
					took = x.drop()
				}
				return took && x.say(fmt.Sprintf("HTTP/1.1 %d %s\r\n%s%s", class.code, http.StatusText(class.code), head, way.head)) && way.then(x)
			}})
		}
	}
	const upgrade = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	for name, then := range map[string]func(x *Exchange) bool{
		"hangs":               (*Exchange).wait,
		"a byte a second":     drip,
		"without end":         func(x *Exchange) bool { return x.repeat(strings.Repeat("x", 64<<10), atOnce) },
		"closes after a byte": func(x *Exchange) bool { return x.say("x") && false },
	} {
		all = append(all, Behaviour{Name: "101 with an upgrade, " + name, State: held, Says: "WebSocket", answer: func(x *Exchange) bool {
			return x.drop() && x.say(upgrade) && then(x)
		}})
	}
	return all
}

// drip sends one byte each second.
func drip(x *Exchange) bool { return x.repeat("t", time.Second) }

// endless2 are endless answers over HTTP/2, while their connection continues to work.
func endless2() []Behaviour {
	var all []Behaviour
	for _, class := range []struct{ status, state string }{{"200", ""}, {"307", held}, {"401", held}, {"503", retrying}} {
		says := class.status
		if class.state == "" {
			says = ""
		}
		all = append(all, Behaviour{Name: class.status + " over HTTP/2 and a hang inside the body", State: class.state, Says: says, frames: func(f *frames) {
			for ok := f.ready(); ok && f.request(); {
				more, stored := []string(nil), true
				if class.state == "" {
					more, stored = f.store()
				}
				ok = stored && f.head(class.status, false, more...) && f.WriteData(f.stream, false, []byte("well, ")) == nil
			}
		}})
	}
	// HTTP/2 has no 101 (RFC 9113, 8.6): a client treats it as an interim response.
	return append(all,
		Behaviour{Name: "101 over HTTP/2", State: retrying, Says: "no answer within", frames: func(f *frames) {
			_ = f.ready() && f.request() && f.head("101", false) && f.c.wait()
		}},
		Behaviour{Name: "101 over HTTP/2 that ends the stream", State: retrying, frames: func(f *frames) {
			_ = f.ready() && f.request() && f.head("101", true) && f.c.wait()
		}},
	)
}
