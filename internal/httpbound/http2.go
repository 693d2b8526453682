package httpbound

import (
	"fmt"
	"net/http"
	"time"

	"golang.org/x/net/http2"
)

// silentFor is how long an HTTP/2 connection may be silent before a ping tests whether the peer is alive.
const silentFor = time.Minute

// SpeakHTTP2 makes t use HTTP/2 where the server agrees to it in the TLS handshake (ALPN), and HTTP/1.1 otherwise. Call
// it before the first request; Protocols and HTTP2 of t must be unset. The bound on the head of an answer is t's
// MaxResponseHeaderBytes.
//
// It takes the implementation of golang.org/x/net. The one in net/http of Go 1.26 deadlocks on its own mutex when a
// server raises the window of a stream beyond 2^31-1 bytes (RFC 9113, section 6.9.1): the connection then hangs for
// ever, and so do all later requests of the transport and CloseIdleConnections, regardless of their contexts.
func SpeakHTTP2(t *http.Transport) error {
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: silentFor}
	if _, err := http2.ConfigureTransports(t); err != nil { //nolint:staticcheck // deprecated in favour of net/http's, which can hang, as said above
		return fmt.Errorf("set up HTTP/2: %w", err)
	}
	return nil
}
