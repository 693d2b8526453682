package wire

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// BenchmarkCompress is what the choice of the snappy implementation rests on; see
// docs/adr.
func BenchmarkCompress(b *testing.B) {
	for _, run := range []int{1, 10} {
		var e testEncoder
		write(&e.Encoder, V1, Zstd, benchSamples(2000, run))
		raw := e.rest()
		var ours compressor
		for _, c := range []struct {
			name   string
			encode func(dst, src []byte) []byte
		}{
			{"golang", snappy.Encode},
			{"s2", s2.EncodeSnappy},
			{"s2better", s2.EncodeSnappyBetter},
			{"s2best", s2.EncodeSnappyBest},
			{"zstd", zstdOf(zstd.SpeedFastest)},
			{"zstddefault", zstdOf(zstd.SpeedDefault)},
			{"zstdbetter", zstdOf(zstd.SpeedBetterCompression)},
			{"ours", func(dst, src []byte) []byte { return ours.appendZstd(dst[:0], src) }},
		} {
			b.Run(fmt.Sprintf("%s/adjacent=%d", c.name, run), func(b *testing.B) {
				dst := make([]byte, snappy.MaxEncodedLen(len(raw)))
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				var out []byte
				for b.Loop() {
					out = c.encode(dst, raw)
				}
				perSample(b, 2000, len(out))
			})
		}
	}
}

// zstdOf is zstd of a level as klauspost/compress has it by default.
func zstdOf(level zstd.EncoderLevel) func(dst, src []byte) []byte {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(level))
	if err != nil {
		panic(err)
	}
	return func(dst, src []byte) []byte { return e.EncodeAll(src, dst[:0]) }
}

// A body of zstd is the message, one frame that says its length, and the encoder can be used again.
func TestZstdBody(t *testing.T) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var e testEncoder
	for _, n := range []int{0, 1, 10, 2000, 50_000, 3} {
		write(&e.Encoder, V1, Zstd, benchSamples(n, 1))
		raw := bytes.Clone(e.rest())
		body := e.AppendBody([]byte("before"))
		frame, ok := bytes.CutPrefix(body, []byte("before"))
		if !ok {
			t.Fatalf("%d samples: what was in dst is gone", n)
		}
		got, err := d.DecodeAll(frame, nil)
		if err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%d samples: %d bytes of %d, %v", n, len(got), len(raw), err)
		}
		var h zstd.Header
		if err := h.Decode(frame); n >= 10 && (err != nil || !h.HasFCS || h.FrameContentSize != uint64(len(raw)) || h.HasCheckSum) {
			t.Errorf("%d samples: header %+v, %v", n, h, err)
		}
	}
}
