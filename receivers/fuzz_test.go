package receivers_test

import (
	"bytes"
	"net/http"
	"testing"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// FuzzBody: whatever a body is compressed with, or is not, it is given to the protocol within
// its bounds or refused; and what was compressed here is what the protocol gets.
func FuzzBody(f *testing.F) {
	encodings := encodings()
	plain := bytes.Repeat([]byte("abc"), 100)
	for i, encoding := range encodings {
		f.Add(byte(i), compressed(f, encoding, plain))
	}
	f.Add(byte(1), []byte("\xff\xff\xff\xff\x0f"))                     // snappy: 4 GiB
	f.Add(byte(4), []byte("\x28\xb5\x2f\xfd\xa0\xff\xff\xff\xff\x00")) // zstd: a frame of 4 GiB
	limits := receivers.DefaultLimits()
	limits.DecodedBytes, limits.MemoryBytes = 1<<20, 16<<20
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		encoding := encodings[int(which)%len(encodings)]
		send := func(body []byte) (got []byte, status int) {
			l := &receivertest.Log{}
			w := post(l.Gate("x", limits).Handler(func(_ http.ResponseWriter, r *receivers.Request) error {
				got = bytes.Clone(r.Body)
				return nil
			}, nil), encoding, body)
			return got, w.Code
		}
		got, status := send(body)
		if status != http.StatusOK && status/100 != 4 || len(got) > int(limits.DecodedBytes) || status != http.StatusOK && got != nil {
			t.Errorf("%q: %d, %d bytes", encoding, status, len(got))
		}
		if len(body) > int(limits.DecodedBytes) {
			return
		}
		if got, status := send(compressed(t, encoding, body)); status != http.StatusOK || !bytes.Equal(got, body) {
			t.Errorf("%q: %d, %d bytes of %d", encoding, status, len(got), len(body))
		}
	})
}
