package segment

import (
	"runtime"
	"testing"

	"github.com/klauspost/compress/s2"
)

// What a record says about its uncompressed length is not believed: a few bytes make a
// reader allocate no more than maxRecord.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 4*MaxRecord)
	for name, c := range map[string]struct {
		flags byte
		bytes []byte
	}{
		"snappy, a length of 2 GiB": {FlagSnappy, []byte{0xff, 0xff, 0xff, 0xff, 0x07, 0, 0}},
		"snappy, true":              {FlagSnappy, s2.EncodeSnappy(nil, zeros)},
	} {
		p := PageReader{flags: c.flags}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, ok := p.expand(nil, c.bytes)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; ok || took > 2*MaxRecord {
			t.Errorf("%s: %d bytes expand: %v, and allocate %d MiB", name, len(c.bytes), ok, took>>20)
		}
	}
}
