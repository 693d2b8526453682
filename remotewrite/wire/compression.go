package wire

import (
	"encoding/binary"
	"fmt"
	"slices"

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

// blockSize is how many bytes of a message snappy compresses at a time, independently of all others: 64 KiB in the block
// format of golang/snappy, which measures better than klauspost/compress, see docs/adr/0008.
const blockSize = 64 << 10

// compressor compresses messages and reuses its memory. The zero value is ready. Not safe for concurrent use.
type compressor struct {
	// packed are complete blocks of snappy without the length of the message, taken the bytes of the message in them. A
	// block is compressed as soon as it is complete: it is still in the processor's cache then, and the whole message, of
	// 600 KB for 2,000 samples, is never in memory.
	packed []byte
	taken  int
	zstd   *zstd.Encoder // nil until it is needed
}

// reset begins another message.
func (c *compressor) reset() { c.packed, c.taken = c.packed[:0], 0 }

// take compresses all complete blocks at the front of raw for snappy, and returns the rest, which it moves to the front.
func (c *compressor) take(raw []byte) (rest []byte) {
	if len(raw) < blockSize {
		return raw
	}
	at := 0
	for ; len(raw)-at >= blockSize; at += blockSize {
		c.block(raw[at : at+blockSize])
	}
	return raw[:copy(raw, raw[at:])]
}

// block compresses the next bytes of the message, blockSize at most.
func (c *compressor) block(raw []byte) {
	at, most := len(c.packed), snappy.MaxEncodedLen(blockSize)
	c.packed = slices.Grow(c.packed, most)
	made := snappy.Encode(c.packed[at:at+most], raw)
	_, length := binary.Uvarint(made) // of raw alone
	c.packed = append(c.packed, made[length:]...)
	c.taken += len(raw)
}

// appendSnappy ends a message with rest and appends it as one snappy block to dst.
func (c *compressor) appendSnappy(dst, rest []byte) []byte {
	for rest = c.take(rest); len(rest) > 0; rest = nil {
		c.block(rest)
	}
	return append(binary.AppendUvarint(dst, uint64(c.taken)), c.packed...) // #nosec G115 -- a count
}

// appendZstd appends the message raw to dst as a frame of zstd.
func (c *compressor) appendZstd(dst, raw []byte) []byte { return c.encoder().EncodeAll(raw, dst) }

// zstdWindow is how far back zstd searches for repetitions. A request of 2,000 samples with
// eight labels each has about 600 kB; a larger window saves nothing measurable and costs its size in memory.
const zstdWindow = 512 << 10

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
