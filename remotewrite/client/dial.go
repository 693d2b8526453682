package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// DialFunc opens a connection, as [net.Dialer.DialContext] does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Of connections: while one is idle, the other side must answer a question within
// idleDeath.
const (
	askIdle   = 15 * time.Second
	askAgain  = 5 * time.Second
	askTimes  = 3
	idleDeath = askIdle + askTimes*askAgain
)

// maxDials is how many connections one request may open: one for itself, another where a
// kept connection turned out to be closed, and one more. An HTTP/2 server that ends each
// connection with GOAWAY before it takes the request (RFC 9113, 6.8) allows that the request is
// sent again, and net/http does so without a pause for as long as the request may last.
const maxDials = 3

// errEndsEach is the error of a request that would open more connections than that.
var errEndsEach = fmt.Errorf("the server ended %d new connections in a row before it took the request (GOAWAY)", maxDials)

// limitDials lets each request open at most maxDials connections. The request then fails, and
// the target pauses as after any other error of the network.
func limitDials(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if t := traceOf(ctx); t != nil && t.dials.Add(1) > maxDials {
			return nil, errEndsEach
		}
		return dial(ctx, network, address)
	}
}

// newDial opens connections that notice that the other side is gone: within half a minute
// while they are idle, and before timeout, which a request has, when what was sent is not
// confirmed. With spread it chooses at random among the addresses that a name has
// (round_robin_dns), instead of always the first that answers.
func newDial(spread bool, timeout time.Duration) DialFunc {
	dialer := &net.Dialer{
		Timeout:         10 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: askIdle, Interval: askAgain, Count: askTimes},
		Control:         limitUnconfirmed(unconfirmed(timeout)),
	}
	if !spread {
		return dialer.DialContext
	}
	return spreadDial(net.DefaultResolver.LookupHost, dialer.DialContext)
}

// unconfirmed is how long what was sent may be unconfirmed by the other side's kernel: not
// as long as a request has for its answer, so that the next request finds another connection,
// and not longer than an idle connection lives, since the limit holds for the questions as
// well (tcp(7), TCP_USER_TIMEOUT).
func unconfirmed(timeout time.Duration) time.Duration { return min(timeout*2/3, idleDeath) }

// spreadDial dials one of a name's addresses at random, and the others where that
// fails.
func spreadDial(lookup func(context.Context, string) ([]string, error), dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		addrs, err := lookup(ctx, host)
		if err != nil {
			return nil, err
		}
		rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
		err = &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
		for _, addr := range addrs {
			var conn net.Conn
			if conn, err = dial(ctx, network, net.JoinHostPort(addr, port)); err == nil {
				return conn, nil
			}
		}
		return nil, err
	}
}
