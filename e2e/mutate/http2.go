package mutate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Frame is one frame of HTTP/2 (RFC 9113, section 4.1).
type Frame struct {
	Type    http2.FrameType
	Flags   http2.Flags
	Stream  uint32
	Payload []byte
}

func (f Frame) bytes() []byte { return f.claiming(len(f.Payload)) }

// claiming returns the frame with a length that may be wrong.
func (f Frame) claiming(n int) []byte {
	out := []byte{byte(n >> 16), byte(n >> 8), byte(n), byte(f.Type), byte(f.Flags)}
	return append(binary.BigEndian.AppendUint32(out, f.Stream), f.Payload...)
}

func steps(all ...Frame) (out []Step) {
	for _, f := range all {
		out = append(out, Step{Bytes: f.bytes()})
	}
	return out
}

// Headers encodes fields as a header block.
func Headers(fields ...Field) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, f := range fields {
		_ = e.WriteField(hpack.HeaderField{Name: strings.ToLower(f.Name), Value: f.Value}) // into memory
	}
	return b.Bytes()
}

// mostPlain is the longest body sent uncompressed over HTTP/2: less than either side accepts before it reads.
const mostPlain = 48 << 10

// maxFrame is the longest payload that either side must accept.
const maxFrame = 16 << 10

// Frames returns the correct answer over HTTP/2. A long body is compressed.
func (a Answer) Frames(stream uint32) []Frame {
	if a.Body.Len() > mostPlain {
		a = a.Gzipped()
	}
	return message(stream, append([]Field{{":status", fmt.Sprint(a.Status)}}, a.Head...), a.Body.Bytes())
}

// Frames returns the correct request over HTTP/2 on stream 1, to be sent after the preface.
func (r Request) Frames(more ...Field) []Frame {
	head := append([]Field{{":method", r.Method}, {":scheme", "http"}, {":authority", r.Host}, {":path", r.Path}}, r.Head...)
	return message(1, append(head, more...), r.Body.Bytes())
}

// Preface begins a client's connection (RFC 9113, section 3.4).
func Preface() Step {
	return Step{Bytes: append([]byte(http2.ClientPreface), Frame{Type: http2.FrameSettings}.bytes()...)}
}

// Sent returns a script that sends frames unchanged.
func Sent(all []Frame) Script { return Script{Steps: steps(all...)} }

func message(stream uint32, head []Field, body []byte) []Frame {
	all := []Frame{{http2.FrameHeaders, http2.FlagHeadersEndHeaders, stream, Headers(head...)}}
	for len(body) > 0 {
		n := min(len(body), maxFrame)
		all = append(all, Frame{http2.FrameData, 0, stream, body[:n]})
		body = body[n:]
	}
	all[len(all)-1].Flags |= http2.FlagDataEndStream // the flag has the same value in HEADERS
	return all
}

// Framed returns a kind for each content of the body of an answer over HTTP/2.
func (a Answer) Framed(stream uint32, contents []Content) (all []Kind) {
	for _, c := range contents {
		all = append(all, Kind{"content: " + c.Name, func(rnd *rand.Rand) Script {
			one := a
			one.Body = c.Make(rnd)
			return Script{Steps: steps(one.Frames(stream)...)}
		}})
	}
	return all
}

// HTTP2 returns the ways in which the frames of a message can be wrong; valid makes correct ones on a stream. begin
// comes before them.
func HTTP2(begin []Step, stream uint32, valid func(rnd *rand.Rand) []Frame) []Kind {
	var all []Kind
	for _, c := range Bytes(func(rnd *rand.Rand) []byte { return flatten(Script{Steps: steps(valid(rnd)...)}) }) {
		all = append(all, Kind{"HTTP/2: " + c.Name, func(rnd *rand.Rand) Script {
			return Script{Steps: slices.Concat(begin, c.Make(rnd).steps()), End: pick(rnd, GoOn, Close, Hold)}
		}})
	}
	frames := func(name string, end End, f func(rnd *rand.Rand, all []Frame) []Frame) {
		all = append(all, Kind{name, func(rnd *rand.Rand) Script {
			return Script{Steps: slices.Concat(begin, steps(f(rnd, valid(rnd))...)), End: end}
		}})
	}
	changed := func(name string, f func(rnd *rand.Rand, one *Frame)) {
		frames(name, GoOn, func(rnd *rand.Rand, all []Frame) []Frame {
			f(rnd, &all[rnd.IntN(len(all))])
			return all
		})
	}
	changed("another type of frame", func(rnd *rand.Rand, f *Frame) { f.Type = http2.FrameType(rnd.IntN(256) >> rnd.IntN(6)) })
	changed("other flags", func(rnd *rand.Rand, f *Frame) { f.Flags ^= 1 << rnd.IntN(8) })
	changed("another stream", func(rnd *rand.Rand, f *Frame) {
		f.Stream = pick(rnd, 0, stream+1, stream+2, stream+100, 1<<31-1, 1<<31|stream, 1)
	})
	changed("another payload", func(rnd *rand.Rand, f *Frame) { f.Payload = Damage(rnd, f.Payload) })
	frames("frames in another order, twice or left out", GoOn, func(rnd *rand.Rand, all []Frame) []Frame {
		all = append(all, all[rnd.IntN(len(all))])
		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[rnd.IntN(2):]
	})
	all = append(all, Kind{"a wrong length of a frame", func(rnd *rand.Rand) Script {
		s := Script{Steps: slices.Clone(begin), End: pick(rnd, Close, Hold)}
		wrong := valid(rnd)
		at := rnd.IntN(len(wrong))
		for i, f := range wrong {
			n := len(f.Payload)
			if i == at {
				n = pick(rnd, 0, 1, n+1, max(0, n-1), maxFrame, maxFrame+1, 1<<24-1)
			}
			s.Steps = append(s.Steps, Step{Bytes: f.claiming(n)})
		}
		return s
	}})
	return slices.Concat(all, connections(begin, stream, valid), floods(begin, stream, valid))
}

// connections returns kinds with connection frames before or amid a correct message.
func connections(begin []Step, stream uint32, valid func(rnd *rand.Rand) []Frame) (all []Kind) {
	before := func(name string, end End, f func(rnd *rand.Rand) Frame) {
		all = append(all, Kind{name, func(rnd *rand.Rand) Script {
			rest := valid(rnd)
			at := rnd.IntN(len(rest) + 1)
			return Script{Steps: slices.Concat(begin, steps(rest[:at]...), steps(f(rnd)), steps(rest[at:]...)), End: end}
		}})
	}
	number := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	codes := func(rnd *rand.Rand) []byte {
		return number(pick[uint32](rnd, 0, 1, 2, 3, 5, 7, 8, 11, 12, 13, 14, 1<<31))
	}
	all = append(all, Kind{"GOAWAY instead of an answer", func(rnd *rand.Rand) Script {
		last := pick(rnd, 0, 0, stream, 1<<31-1)
		return Script{Steps: slices.Concat(begin, steps(Frame{Type: http2.FrameGoAway, Payload: append(number(last), codes(rnd)...)})), End: pick(rnd, Hold, Close)}
	}}, Kind{"RST_STREAM instead of an answer", func(rnd *rand.Rand) Script {
		return Script{Steps: slices.Concat(begin, steps(Frame{Type: http2.FrameRSTStream, Stream: stream, Payload: codes(rnd)}))}
	}})
	before("GOAWAY amid a message", GoOn, func(rnd *rand.Rand) Frame {
		return Frame{Type: http2.FrameGoAway, Payload: append(append(number(pick(rnd, 0, stream, 1<<31-1)), codes(rnd)...), noise(rnd)...)}
	})
	before("RST_STREAM amid a message", GoOn, func(rnd *rand.Rand) Frame {
		return Frame{Type: http2.FrameRSTStream, Stream: pick(rnd, stream, stream, 0, stream+2), Payload: codes(rnd)}
	})
	before("odd settings", GoOn, func(rnd *rand.Rand) Frame {
		var p []byte
		for range 1 + rnd.IntN(5) {
			p = binary.BigEndian.AppendUint16(p, pick[uint16](rnd, 1, 2, 3, 4, 5, 6, 8, 0xffff))
			p = append(p, number(pick[uint32](rnd, 0, 1, 100, 16384, 1<<24-1, 1<<24, 1<<31-1, 1<<31, 1<<32-1))...)
		}
		return Frame{Type: http2.FrameSettings, Flags: pick[http2.Flags](rnd, 0, 0, 0, 1), Payload: p}
	})
	before("WINDOW_UPDATE of nothing or too much", GoOn, func(rnd *rand.Rand) Frame {
		return Frame{Type: http2.FrameWindowUpdate, Stream: pick(rnd, 0, stream), Payload: number(pick[uint32](rnd, 0, 1, 1<<31-1, 1<<32-1))}
	})
	before("PUSH_PROMISE", GoOn, func(rnd *rand.Rand) Frame {
		return Frame{http2.FramePushPromise, pick[http2.Flags](rnd, 0, 4), stream, append(number(pick[uint32](rnd, 2, 4, 0, 1)), Headers(Field{":path", "/"})...)}
	})
	before("PRIORITY on itself", GoOn, func(rnd *rand.Rand) Frame {
		return Frame{http2.FramePriority, 0, stream, append(number(stream), pick[byte](rnd, 0, 255))}
	})
	before("CONTINUATION of nothing", GoOn, func(*rand.Rand) Frame {
		return Frame{http2.FrameContinuation, 4, stream, Headers(Field{"x", "y"})}
	})
	before("DATA on stream 0", GoOn, func(*rand.Rand) Frame { return Frame{Type: http2.FrameData, Payload: []byte("x")} })
	before("padding that is longer than the frame", GoOn, func(rnd *rand.Rand) Frame {
		return Frame{http2.FrameData, http2.FlagDataPadded, stream, pick(rnd, []byte{255}, []byte{3, 0, 0}, nil)}
	})
	before("headers of HPACK that make no sense", GoOn, func(rnd *rand.Rand) Frame {
		return Frame{http2.FrameHeaders, pick[http2.Flags](rnd, 4, 5), pick(rnd, stream, stream+2), pick(rnd, noise(rnd), []byte{0x80}, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, []byte{0x3f, 0xff, 0xff, 0xff, 0xff, 0x0f}, nil)}
	})
	before("odd headers", GoOn, func(rnd *rand.Rand) Frame {
		field := pick(rnd, Field{":status", "101"}, Field{":status", "99"}, Field{":status", "x"}, Field{":status", ""}, Field{":unknown", "x"}, Field{"", "x"}, Field{"connection", "upgrade"}, Field{"transfer-encoding", "chunked"}, Field{"content-length", "-1"}, Field{"content-length", "5"}, Field{"te", "gzip"}, Field{"x", "a\r\nb"}, Field{"x", strings.Repeat("m", 100000)[:1+rnd.IntN(15000)]})
		return Frame{http2.FrameHeaders, pick[http2.Flags](rnd, 4, 4, 5), stream, Headers(field)}
	})
	return all
}

// floods returns kinds that never end, or end in silence.
func floods(begin []Step, stream uint32, valid func(rnd *rand.Rand) []Frame) (all []Kind) {
	flood := func(name string, first []Frame, again Frame) {
		all = append(all, Kind{name, func(*rand.Rand) Script {
			return Script{Steps: append(slices.Concat(begin, steps(first...)), Step{Bytes: bytes.Repeat(again.bytes(), 10), Times: Endless, Pause: pace})}
		}})
	}
	flood("a flood of PING", nil, Frame{Type: http2.FramePing, Payload: make([]byte, 8)})
	flood("a flood of SETTINGS", nil, Frame{Type: http2.FrameSettings})
	flood("a flood of empty DATA", []Frame{{http2.FrameHeaders, 4, stream, Headers(Field{":status", "200"})}}, Frame{Type: http2.FrameData, Stream: stream})
	flood("a flood of 103", nil, Frame{http2.FrameHeaders, 4, stream, Headers(Field{":status", "103"})})
	flood("CONTINUATION without end", []Frame{{http2.FrameHeaders, 0, stream, Headers(Field{":status", "200"})}}, Frame{http2.FrameContinuation, 0, stream, Headers(Field{"x-much", strings.Repeat("m", 1000)})})
	flood("a flood of RST_STREAM", nil, Frame{Type: http2.FrameRSTStream, Stream: stream, Payload: make([]byte, 4)})
	flood("a flood of WINDOW_UPDATE", nil, Frame{Type: http2.FrameWindowUpdate, Payload: []byte{0, 0, 0, 1}})
	flood("a flood of frames of no known type", nil, Frame{Type: 0xbb, Payload: make([]byte, 100)})
	all = append(all, Kind{"a message without its end", func(rnd *rand.Rand) Script {
		s := Script{Steps: slices.Concat(begin, steps(valid(rnd)...)), End: Hold}
		s.Steps = s.Steps[:len(begin)+rnd.IntN(len(s.Steps)-len(begin))]
		return s
	}}, Kind{"HTTP/1.1 amid HTTP/2", func(rnd *rand.Rand) Script {
		return Script{Steps: append(slices.Clone(begin), write("HTTP/1.1 101 Switching Protocols\r\n\r\n")), End: pick(rnd, Hold, Close)}
	}})
	return append(all, breaks()...)
}
