package hostile

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frames is a connection of HTTP/2, frame by frame.
type frames struct {
	*http2.Framer
	c      *conn
	stream uint32 // stream of the last request
	req    *http.Request
}

// http2 serves a connection of HTTP/2.
func (c *conn) http2(b *Behaviour) {
	if b != nil && b.frames != nil {
		f := &frames{Framer: http2.NewFramer(c.Conn, c.lines), c: c}
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(c.lines, preface); err != nil {
			return
		}
		c.s.fired()
		b.frames(f)
		return
	}
	f := &frames{Framer: http2.NewFramer(c.Conn, c.lines), c: c}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.lines, preface); err != nil || f.WriteSettings() != nil {
		return
	}
	for f.request() && f.accept() {
	}
}

// request reads frames until a request is complete.
func (f *frames) request() bool {
	stream, req, err := ReadHTTP2(f.Framer)
	if err != nil {
		return false
	}
	f.stream, f.req = stream, req
	f.c.met(req)
	return true
}

// ReadHTTP2 reads frames as a server until a request is complete, and answers SETTINGS, PING and DATA. An error means
// that no request will come.
func ReadHTTP2(f *http2.Framer) (stream uint32, req *http.Request, err error) {
	var body bytes.Buffer
	head := http.Header{}
	if f.ReadMetaHeaders == nil { // it keeps the connection's table of headers
		f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return 0, nil, err
		}
		ends := false
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				err = f.WritePing(true, frame.Data)
			}
		case *http2.MetaHeadersFrame:
			stream = frame.StreamID
			for _, h := range frame.RegularFields() {
				head.Add(h.Name, h.Value)
			}
			ends = frame.StreamEnded()
		case *http2.DataFrame:
			body.Write(frame.Data())
			if n := uint32(len(frame.Data())); n > 0 {
				err = errors.Join(f.WriteWindowUpdate(0, n), f.WriteWindowUpdate(frame.StreamID, n))
			}
			ends = frame.StreamEnded()
		case *http2.GoAwayFrame:
			err = io.EOF
		}
		if err != nil {
			return 0, nil, err
		}
		if ends {
			return stream, &http.Request{Method: http.MethodPost, Header: head, Body: io.NopCloser(&body)}, nil
		}
	}
}

// accept stores the request and answers success.
func (f *frames) accept() bool {
	more, ok := f.store()
	return ok && f.head("204", true, more...)
}

// store stores the request. It returns the headers of the answer.
func (f *frames) store() (more []string, ok bool) {
	n, err := f.c.s.store(f.req, false)
	if err != nil {
		return nil, false
	}
	more = []string{"date", time.Now().UTC().Format(http.TimeFormat)}
	if isV2(f.req) {
		more = append(more, "x-prometheus-remote-write-samples-written", strconv.Itoa(n))
	}
	return more, true
}

// head writes the head of an answer; more are names and values.
func (f *frames) head(status string, ends bool, more ...string) bool {
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: f.stream, BlockFragment: encoded(append([]string{":status", status}, more...)...), EndHeaders: true, EndStream: ends}) == nil
}

// encoded returns headers in the encoding of HTTP/2.
func encoded(fields ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i+1 < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // into memory
	}
	return b.Bytes()
}

// ready sends the settings.
func (f *frames) ready() bool { return f.WriteSettings() == nil }

// http2s misbehave below HTTP.
func http2s() []Behaviour {
	all := []Behaviour{
		{Name: "GOAWAY at once", State: retrying, Says: "GOAWAY", frames: func(f *frames) {
			_ = f.ready() && f.WriteGoAway(0, http2.ErrCodeNo, nil) == nil && f.c.wait()
		}},
		{Name: "GOAWAY instead of an answer", State: retrying, Says: "GOAWAY", frames: func(f *frames) {
			_ = f.ready() && f.request() && f.WriteGoAway(0, http2.ErrCodeNo, nil) == nil && f.c.wait()
		}},
		{Name: "GOAWAY: enhance your calm", State: retrying, Says: "ENHANCE_YOUR_CALM", frames: func(f *frames) {
			_ = f.ready() && f.request() && f.WriteGoAway(f.stream, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings")) == nil
		}},
		{Name: "GOAWAY after each answer", frames: func(f *frames) {
			_ = f.ready() && f.request() && f.accept() && f.WriteGoAway(f.stream, http2.ErrCodeNo, nil) == nil && f.c.wait()
		}},
		{Name: "streams are refused", State: retrying, frames: func(f *frames) {
			for ok := f.ready(); ok; {
				ok = f.request() && f.WriteRSTStream(f.stream, http2.ErrCodeRefusedStream) == nil
			}
		}},
		{Name: "streams are reset", State: retrying, Says: "INTERNAL_ERROR", frames: func(f *frames) {
			for ok := f.ready(); ok; {
				ok = f.request() && f.WriteRSTStream(f.stream, http2.ErrCodeInternal) == nil
			}
		}},
		{Name: "no stream at all is allowed", State: retrying, frames: func(f *frames) {
			_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0}) == nil && f.c.wait()
		}},
		{Name: "no answer over HTTP/2", State: retrying, Says: "no answer within", frames: func(f *frames) { _ = f.ready() && f.request() && f.c.wait() }},
		{Name: "no settings", State: retrying, frames: func(f *frames) { f.c.wait() }},
		{Name: "a flood of pings", State: retrying, Says: "no answer within", frames: func(f *frames) {
			go f.c.wait() // ends with the connection
			for ok := f.ready(); ok; {
				ok = f.WritePing(false, [8]byte{1}) == nil
				time.Sleep(atOnce)
			}
		}},
		{Name: "headers without end over HTTP/2", State: retrying, frames: func(f *frames) {
			if !f.ready() || !f.request() {
				return
			}
			go f.c.wait()
			much := encoded("x-much", string(bytes.Repeat([]byte("m"), 4000)))
			ok := f.WriteHeaders(http2.HeadersFrameParam{StreamID: f.stream, BlockFragment: encoded(":status", "204")}) == nil
			for ok {
				ok = f.WriteContinuation(f.stream, false, much) == nil
				time.Sleep(atOnce)
			}
		}},
		{Name: "503 over HTTP/2", State: retrying, Says: "503", frames: func(f *frames) {
			for ok := f.ready(); ok; {
				ok = f.request() && f.head("503", true)
			}
		}},
		{Name: "a body without end over HTTP/2", State: retrying, Says: "503", frames: func(f *frames) {
			ok := f.ready() && f.request() && f.head("503", false)
			go f.c.wait()
			for ok {
				ok = f.WriteData(f.stream, false, make([]byte, 16<<10)) == nil
				time.Sleep(atOnce) // ignore its window
			}
		}},
		{Name: "frames that make no sense", State: retrying, frames: func(f *frames) {
			_ = f.ready() && f.request() && f.WriteRawFrame(http2.FrameData, 0, 0, []byte("on stream 0")) == nil && f.c.wait()
		}},
		{Name: "the window of a stream beyond its bound", State: retrying, Says: "FLOW_CONTROL_ERROR", frames: func(f *frames) {
			_ = f.ready() && f.request() && f.WriteWindowUpdate(f.stream, math.MaxInt32) == nil && f.c.wait()
		}},
		{Name: "HTTP/1.1 where HTTP/2 was agreed on", State: retrying, frames: func(f *frames) {
			_ = f.c.say("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") && f.c.wait()
		}},
	}
	all = append(all, endless2()...)
	for i := range all {
		all[i].HTTP2 = true
	}
	return all
}
