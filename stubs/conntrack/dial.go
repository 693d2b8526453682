// Package conntrack stands in for github.com/mwitkow/go-conntrack, which
// prometheus/common dials through. That one counts connections in client_golang's default
// registry and keeps a log of each for golang.org/x/net/trace. The agent exports neither, and
// x/net/trace links html/template: see docs/adr/0027-what-is-linked.md.
//
// It has what prometheus/common calls and nothing else, so a version that calls more does not
// build.
package conntrack

import (
	"context"
	"net"
)

// DialFunc is the type of [net.Dialer.DialContext].
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Option is one of NewDialContextFunc.
type Option func(dial *DialFunc)

// DialWithDialContextFunc makes dial the function that connects.
func DialWithDialContextFunc(dial DialFunc) Option { return func(d *DialFunc) { *d = dial } }

// DialWithTracing does nothing here.
func DialWithTracing() Option { return func(*DialFunc) {} }

// DialWithName does nothing here.
func DialWithName(string) Option { return func(*DialFunc) {} }

// NewDialContextFunc returns the function that connects: that of a [net.Dialer] unless an
// option gives another.
func NewDialContextFunc(options ...Option) DialFunc {
	dial := (&net.Dialer{}).DialContext
	for _, o := range options {
		o(&dial)
	}
	return dial
}
