// Package conntrack replaces github.com/mwitkow/go-conntrack, which Prometheus' HTTP client
// (github.com/prometheus/common/config) wraps around each dialer; a replace directive in the agent's go.mod substitutes
// it. It has the functions that this client calls, and they only dial.
//
// The original counts connections in Prometheus' default registry and keeps a log of each for /debug/events. The agent
// shows neither, but the log links golang.org/x/net/trace and thereby html/template, which keeps Go's linker from
// removing methods: 4 MB. See docs/adr/0073.
package conntrack

import (
	"context"
	"net"
)

// DialFunc dials like [net.Dialer.DialContext].
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Option says how connections are made.
type Option func(DialFunc) DialFunc

// DialWithDialContextFunc makes connections with dial.
func DialWithDialContextFunc(dial DialFunc) Option { return func(DialFunc) DialFunc { return dial } }

// DialWithTracing changes nothing.
func DialWithTracing() Option { return func(dial DialFunc) DialFunc { return dial } }

// DialWithName changes nothing.
func DialWithName(string) Option { return func(dial DialFunc) DialFunc { return dial } }

// NewDialContextFunc returns the dialer that the options select, a plain [net.Dialer] without any.
func NewDialContextFunc(options ...Option) DialFunc {
	dial := (&net.Dialer{}).DialContext
	for _, o := range options {
		dial = o(dial)
	}
	return dial
}
