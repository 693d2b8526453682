package hostile

import (
	"crypto/tls"
	"slices"
	"time"
)

// Behaviour is one way to misbehave, and what a sender should make of it. At most one of
// the functions that take over is set.
type Behaviour struct {
	Name string

	// Secure and HTTP2 say what the server speaks when it is well.
	Secure, HTTP2 bool

	shut   bool                      // the port is closed
	raw    func(c *conn)             // has a connection before TLS
	shake  func(*tls.Config, *Certs) // changes the handshake
	plain  func(c *conn)             // has a connection after TLS, instead of HTTP
	answer func(x *Exchange) bool    // answers a request; false: the connection is closed
	frames func(f *frames)           // has a connection of HTTP/2

	// State is the state that a target is in meanwhile: "retrying" or "held"; "" where data
	// goes through.
	State string
	// Says is what the target's status says about it, beside others.
	Says string

	// Unseen: no request may get through, since the sender cannot know who is there.
	Unseen bool
	// Swallows: the answer is a success and nothing is stored. A sender of remote write 1.0
	// cannot know.
	Swallows bool
	// Slow: data comes, but not in time.
	Slow bool
	// Pause is how long no request may come after an answer: it asks for that. Longer than a
	// minute, the sender may take that long to notice that the server is well.
	Pause time.Duration
}

// Long reports whether a sender may come back only after the behaviour asked it to.
func (b Behaviour) Long() bool { return b.Pause > time.Minute }

// Behaviours are all that there are.
func Behaviours() []Behaviour {
	all := slices.Concat(statuses(), redirects(), waits(), bodies(), endless(), heads(), slowness(), breaks(), others(), handshakes(), http2s())
	for i := range all {
		all[i].Secure = all[i].Secure || all[i].HTTP2
	}
	return all
}

// The states of a target, as its status calls them.
const (
	retrying = "retrying"
	held     = "held"
)
