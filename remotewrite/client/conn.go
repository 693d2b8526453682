package client

import (
	"context"
	"io"
	"net"

	"hwsagent/internal/spare"
)

// copySize is the size of a buffer, in bytes, through which a body is copied to its connection.
const copySize = 32 << 10

// copyBuffers is a pool of buffers of copySize bytes. The zero value is ready, and safe for concurrent use.
type copyBuffers struct{ free spare.Stack[[copySize]byte] }

// dial returns a DialFunc whose connections copy bodies through buffers of the pool.
func (b *copyBuffers) dial(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return copyingConn{conn, b}, nil
	}
}

// copyingConn is a connection that copies a body through a reused buffer. net/http sends the header by itself before a
// body whose type it does not know, and then calls ReadFrom; that of a TCP connection allocates 32 KiB for each body.
// With TLS, net/http calls that of the TLS connection, and this one is not used.
type copyingConn struct {
	net.Conn
	buffers *copyBuffers
}

// ReadFrom implements [io.ReaderFrom].
func (c copyingConn) ReadFrom(r io.Reader) (int64, error) {
	buf := c.buffers.free.Take()
	if buf == nil {
		buf = new([copySize]byte)
	}
	defer c.buffers.free.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{c.Conn}, r, buf[:])
}
