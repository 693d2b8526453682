package hostile

import (
	"crypto/tls"
	"slices"
	"time"
)

// Behaviour is one way to misbehave, with the expected reaction of a sender. At most one of the functions that take
// over may be set.
type Behaviour struct {
	Name string

	// Secure and HTTP2 describe the server's normal protocol.
	Secure, HTTP2 bool

	shut   bool                      // the port is closed
	raw    func(c *conn)             // has a connection before TLS
	shake  func(*tls.Config, *Certs) // changes the handshake
	plain  func(c *conn)             // has a connection after TLS, instead of HTTP
	answer func(x *Exchange) bool    // answers a request; false: the connection is closed
	frames func(f *frames)           // has a connection of HTTP/2

	// State is the expected state of a target meanwhile: "retrying" or "held"; "" if data gets through.
	State string
	// Again is the expected state of a target if the receiver misbehaved so within the last hour, too; "": State.
	Again string
	// Says is a text expected in the target's status.
	Says string

	// Unseen: no request may get through, because the sender cannot verify the server.
	Unseen bool
	// Swallows: the answer is a success but nothing is stored. A sender of remote write 1.0 cannot know.
	Swallows bool
	// Slow: data arrives, but not in time.
	Slow bool
	// Pause is how long no request may follow an answer that asks for it. If it is longer than a minute, the sender may
	// also take that long to notice that the server is normal again.
	Pause time.Duration
}

// Long reports whether a sender may only return after the requested pause.
func (b Behaviour) Long() bool { return b.Pause > time.Minute }

// Behaviours returns all behaviours.
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
