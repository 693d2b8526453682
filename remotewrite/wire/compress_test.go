package wire

import (
	"fmt"
	"testing"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/s2"
)

// BenchmarkCompress is what the choice of the snappy implementation rests on; see
// docs/adr.
func BenchmarkCompress(b *testing.B) {
	for _, run := range []int{1, 10} {
		var e Encoder
		encode(&e, V1, benchSamples(2000, run))
		raw := e.buf
		for _, c := range []struct {
			name   string
			encode func(dst, src []byte) []byte
		}{
			{"golang", snappy.Encode},
			{"s2", s2.EncodeSnappy},
			{"s2better", s2.EncodeSnappyBetter},
			{"s2best", s2.EncodeSnappyBest},
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
