package wire

import (
	"fmt"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
)

// Compression is how the body of a request is compressed.
type Compression uint8

// The compressions.
const (
	// Snappy is the block format, which both versions of the protocol require.
	Snappy Compression = iota
	// Zstd is understood by VictoriaMetrics, from 1.88 on, for messages of 1.0.
	// Source: VictoriaMetrics, lib/protoparser/promremotewrite/stream/streamparser.go.
	Zstd

	NumCompressions
)

// String returns the compression as in the Content-Encoding header, metrics, status and logs.
func (c Compression) String() string { return [NumCompressions]string{"snappy", "zstd"}[c] }

// compressor compresses messages and reuses its memory. The zero value is ready. Not safe for concurrent use.
type compressor struct {
	packed []byte
	zstd   *zstd.Encoder // nil until it is needed
}

// zstdWindow is how far back zstd searches for repetitions. A request of 2,000 samples with
// eight labels each has about 600 kB; a larger window saves nothing measurable and costs its size in memory.
const zstdWindow = 512 << 10

// appendTo appends raw to dst in compressed form.
func (c *compressor) appendTo(dst, raw []byte, by Compression) []byte {
	if by == Zstd {
		return c.encoder().EncodeAll(raw, dst)
	}
	c.packed = compress(c.packed, raw)
	return append(dst, c.packed...)
}

func (c *compressor) encoder() *zstd.Encoder {
	if c.zstd == nil {
		var err error
		// One message at a time: no goroutines. TCP and the frame's length detect damage, so
		// there is no checksum, as in snappy's block format.
		c.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
		if err != nil {
			panic(fmt.Sprintf("make zstd encoder: %v", err)) // the options are constants
		}
	}
	return c.zstd
}

// compress returns raw as a snappy block, in the memory of dst if that is large enough. It
// uses golang/snappy, which measures better than klauspost/compress: see docs/adr/0008. New
// memory has an eighth more than needed, so that messages that grow by a few bytes
// do not allocate every time.
func compress(dst, raw []byte) []byte {
	if n := snappy.MaxEncodedLen(len(raw)); n > cap(dst) {
		dst = make([]byte, n+n/8)
	}
	return snappy.Encode(dst[:cap(dst)], raw)
}
