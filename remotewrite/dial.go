package remotewrite

import (
	"context"
	"math/rand/v2"
	"net"
	"time"
)

// DialFunc opens a connection, as [net.Dialer.DialContext] does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// newDial opens connections that notice within half a minute that the other side is
// gone while they are idle; requests in flight have remote_timeout. With spread it
// chooses at random among the addresses that a name has (round_robin_dns), instead of
// always the first that answers.
func newDial(spread bool) DialFunc {
	dialer := &net.Dialer{
		Timeout:         10 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	if !spread {
		return dialer.DialContext
	}
	return spreadDial(net.DefaultResolver.LookupHost, dialer.DialContext)
}

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
