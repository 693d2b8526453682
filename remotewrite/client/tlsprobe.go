package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// Bounds of the question whether a port that cut a plain connection speaks TLS.
const (
	askTLSEvery = time.Minute
	askTLSFor   = 2 * time.Second
)

// tlsAsked is the last answer to that question.
type tlsAsked struct {
	mu  sync.Mutex
	at  time.Time
	yes bool
}

// speaksTLS reports whether the port of an http:// URL speaks TLS, by a handshake that sends no data. Many servers close a
// plain connection to such a port without a word, so that only this tells a wrong scheme from a broken receiver.
func (c *Client) speaksTLS(ctx context.Context) bool {
	s := siteOf(c.entry)
	if s.scheme != "http" || ctx.Err() != nil {
		return false
	}
	c.tls.mu.Lock()
	defer c.tls.mu.Unlock()
	if time.Since(c.tls.at) >= askTLSEvery {
		c.tls.at, c.tls.yes = time.Now(), handshakes(ctx, c.opts.Dial, s)
	}
	return c.tls.yes
}

// handshakes reports whether the site answers the first message of TLS with TLS.
func handshakes(ctx context.Context, dial DialFunc, s site) bool {
	ctx, cancel := context.WithTimeout(ctx, askTLSFor)
	defer cancel()
	conn, err := dial(ctx, "tcp", s.addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	err = tls.Client(conn, &tls.Config{ServerName: s.host, InsecureSkipVerify: true}).HandshakeContext(ctx) //nolint:gosec // nothing is sent
	operation, _ := errors.AsType[*net.OpError](err)
	return err == nil || operation != nil && operation.Op == "remote error" // an alert
}
