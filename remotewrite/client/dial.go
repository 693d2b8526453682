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

// Keep-alive probes: while a connection is idle, the other side must answer one within
// idleDeath.
const (
	askIdle   = 15 * time.Second
	askAgain  = 5 * time.Second
	askTimes  = 3
	idleDeath = askIdle + askTimes*askAgain
)

// maxDials is how many connections one request may open: one for itself, another if a
// kept connection turned out to be closed, and one more. An HTTP/2 server that ends each
// connection with GOAWAY before it processes the request (RFC 9113, 6.8) allows a retry,
// and net/http retries without a pause for as long as the request may last.
const maxDials = 3

// errEndsEach is the error of a request that would open more than maxDials connections.
var errEndsEach = fmt.Errorf("the server ended %d new connections in a row before it took the request (GOAWAY)", maxDials)

// limitDials returns a DialFunc that opens at most maxDials connections for one request. A request
// that needs more fails, and the target pauses as after any other network error.
func limitDials(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if t := traceOf(ctx); t != nil && t.dials.Add(1) > maxDials {
			return nil, errEndsEach
		}
		return dial(ctx, network, address)
	}
}

// newDial returns a DialFunc whose connections detect that the other side is gone: within half a
// minute while they are idle, and within the request's timeout while sent data is not
// acknowledged. With spread it picks one of a name's addresses at random (round_robin_dns)
// instead of the first that answers.
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

// unconfirmed returns how long sent data may stay unacknowledged by the other side's kernel. It is
// less than a request's timeout, so that the next request finds another connection, and at most
// idleDeath, because the limit also holds for keep-alive probes (tcp(7), TCP_USER_TIMEOUT).
func unconfirmed(timeout time.Duration) time.Duration { return min(timeout*2/3, idleDeath) }

// spreadDial dials one of a name's addresses at random, and tries the others if that
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
