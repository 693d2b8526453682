package receivers

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"hwsagent/internal/spare"
)

const (
	piece = 64 << 10 // bytes per read of a body
	begin = 4 << 10  // bytes allocated for a body before any of it has arrived

	// maxExpansion bounds how much longer than its compressed form a block of snappy can be: an element of 3 bytes
	// stands for at most 64.
	maxExpansion = 22

	maxZstdWindow = 8 << 20 // the least that RFC 8878 requires of a decoder

	framedBytes = 144 << 10 // memory of a reader of snappy's framing format, whatever it reads

	spareBytes = 2 << 20 // of the largest buffer that is kept for the next request
)

// buffers are those of the bodies of earlier requests.
type buffers = spare.Stack[[]byte]

// Reusable says that nothing keeps a part of the request's bodies after its handler has returned, so later requests may use
// their memory.
func (r *Request) Reusable() { r.reusable = true }

// buffer returns an empty buffer of an earlier request for n bytes, nil if there is none.
func (r *Request) buffer(from *buffers, n int64) []byte {
	b := from.Take()
	if b == nil || int64(cap(*b)) < n { // a larger one will take its place
		return nil
	}
	if r.take(int64(cap(*b))) != nil {
		from.Put(b)
		return nil
	}
	return *b
}

// roomy returns the size of a buffer for n bytes that is likely to be large enough for the next request, too.
func roomy(n int64) int64 { return n + n/8 }

// keep keeps a buffer of a reusable request.
func (r *Request) keep(to *buffers, b []byte) {
	if b = b[:0]; r.reusable && 0 < cap(b) && cap(b) <= spareBytes {
		to.Put(&b)
	}
}

// SnappyFramed is the Content-Encoding of snappy's framing format, which programs such as snzip write. Protocols
// disagree about the meaning of "snappy": a receiver whose protocol uses it for the framing format replaces it by
// SnappyFramed.
//
// Source: https://github.com/google/snappy/blob/main/framing_format.txt.
const SnappyFramed = "x-snappy-framed"

// read reads the body as it arrives, within limits.body_bytes and the time limits of a client.
func (r *Request) read(w http.ResponseWriter) (body []byte, err error) {
	most := r.gate.o.Limits.BodyBytes
	if r.ContentLength > most {
		return nil, Refuse(BodyTooLarge, http.StatusRequestEntityTooLarge, "the body has %d bytes, more than limits.body_bytes (%d)", r.ContentLength, most)
	}
	c := http.NewResponseController(w)
	end := time.Now().Add(bodyTimeout)
	// A connection without deadlines, as in a test of the handler alone, needs no reset.
	defer func() {
		if err != nil {
			linger(w)
			return
		}
		_ = c.SetReadDeadline(time.Time{})
	}()
	body = r.buffer(&r.gate.received, max(begin, r.ContentLength+1))
	for {
		if len(body) == cap(body) {
			grown := max(begin, 2*int64(cap(body)))
			if r.ContentLength >= 0 {
				grown = min(grown, roomy(r.ContentLength)+1) // one more byte, to reach the end
			}
			grown = max(min(grown, most+1), int64(cap(body))+1)
			if err := r.take(grown - int64(cap(body))); err != nil {
				return nil, err
			}
			body = slices.Grow(body, int(grown)-len(body))
		}
		if d := time.Now().Add(stallTimeout); d.Before(end) {
			_ = c.SetReadDeadline(d)
		} else {
			_ = c.SetReadDeadline(end)
		}
		n, err := r.Request.Body.Read(body[len(body):min(cap(body), len(body)+piece)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > most:
			return nil, Refuse(BodyTooLarge, http.StatusRequestEntityTooLarge, "the body has more bytes than limits.body_bytes (%d)", most)
		case errors.Is(err, io.EOF):
			return body, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, Refuse(Slow, http.StatusRequestTimeout, "the body did not come in time: no byte for %s, or not all within %s", stallTimeout, bodyTimeout)
		case err != nil:
			return nil, Refuse(BadRequest, http.StatusBadRequest, "read the body: %s", cut(err.Error()))
		}
	}
}

// linger bounds how long the server continues to read a body that was not read to its end. It continues because the
// client may read the answer only after it has sent everything.
func linger(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingerTimeout)) // as in read
}

// checkEncoding refuses a body that decode cannot decompress.
func checkEncoding(r *http.Request) error {
	switch name := r.Header.Get("Content-Encoding"); coding(name) {
	case "", "identity", "snappy", SnappyFramed, "gzip", "x-gzip", "zstd":
		return nil
	default:
		return errEncoding(name)
	}
}

// coding returns an encoding's name in lower case.
func coding(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

func errEncoding(encoding string) error {
	return Refuse(Unsupported, http.StatusUnsupportedMediaType, "Content-Encoding %q: want snappy, gzip, zstd or none", cut(encoding))
}

// decode decompresses a body. "snappy" is its block format, as remote write uses it.
func (r *Request) decode(encoding string, body []byte) ([]byte, error) {
	switch coding(encoding) {
	case "", "identity":
		if int64(len(body)) > r.gate.o.Limits.DecodedBytes {
			return nil, r.tooLong()
		}
		return body, nil
	case "snappy":
		return r.snappy(body)
	case SnappyFramed:
		if err := r.take(framedBytes); err != nil {
			return nil, err
		}
		return r.stream("snappy", snappy.NewReader(bytes.NewReader(body)))
	case "gzip", "x-gzip":
		z := r.gate.gzips.Take()
		if z == nil {
			z = new(gzip.Reader)
		}
		defer r.gate.gzips.Put(z)
		if err := z.Reset(bytes.NewReader(body)); err != nil {
			return nil, Refuse(Malformed, http.StatusBadRequest, "decompress gzip: %s", cut(err.Error()))
		}
		return r.stream("gzip", z)
	case "zstd":
		// The decoder keeps the window in addition to its output.
		if err := r.take(min(maxZstdWindow, r.gate.o.Limits.DecodedBytes)); err != nil {
			return nil, err
		}
		z, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxZstdWindow), zstd.WithDecoderMaxMemory(uint64(r.gate.o.Limits.DecodedBytes)+1))
		if err != nil {
			return nil, Refuse(Malformed, http.StatusBadRequest, "decompress zstd: %s", cut(err.Error()))
		}
		defer z.Close()
		return r.stream("zstd", z)
	}
	return nil, errEncoding(encoding)
}

// Decompress decompresses b, a part of the body, in one of the encodings that
// Content-Encoding may name.
func (r *Request) Decompress(encoding string, b []byte) ([]byte, error) { return r.decode(encoding, b) }

func (r *Request) tooLong() error {
	return Refuse(DecodedTooLong, http.StatusRequestEntityTooLarge, "decompressed, the body has more bytes than limits.decoded_bytes (%d)", r.gate.o.Limits.DecodedBytes)
}

func (r *Request) snappy(body []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(body)
	switch {
	case err != nil:
		return nil, Refuse(Malformed, http.StatusBadRequest, "decompress snappy: %s", cut(err.Error()))
	case int64(n) > r.gate.o.Limits.DecodedBytes:
		return nil, r.tooLong()
	case n > maxExpansion*len(body):
		return nil, Refuse(Malformed, http.StatusBadRequest, "decompress snappy: %d bytes cannot stand for %d", len(body), n)
	}
	out := r.buffer(&r.gate.decoded, int64(n))
	if out == nil {
		if err := r.take(roomy(int64(n))); err != nil {
			return nil, err
		}
		out = make([]byte, roomy(int64(n)))
	}
	if out, err = snappy.Decode(out[:n], body); err != nil {
		return nil, Refuse(Malformed, http.StatusBadRequest, "decompress snappy: %s", cut(err.Error()))
	}
	r.unpacked = out
	return out, nil
}

// stream reads z to its end, up to limits.decoded_bytes.
func (r *Request) stream(encoding string, z io.Reader) ([]byte, error) {
	most := r.gate.o.Limits.DecodedBytes
	out := r.buffer(&r.gate.decoded, piece)
	for {
		if len(out) == cap(out) {
			grown := max(min(max(piece, 2*int64(cap(out))), most+1), int64(cap(out))+1)
			if err := r.take(grown - int64(cap(out))); err != nil {
				return nil, err
			}
			out = slices.Grow(out, int(grown)-len(out))
		}
		n, err := z.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		switch {
		case int64(len(out)) > most, errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded):
			return nil, r.tooLong()
		case errors.Is(err, io.EOF):
			r.unpacked = out
			return out, nil
		case err != nil:
			return nil, Refuse(Malformed, http.StatusBadRequest, "decompress %s: %s", encoding, cut(err.Error()))
		}
	}
}
