package httpbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// Headers with nothing but :status, by the static table of HPACK (RFC 7541, appendix A).
var (
	status200 = []byte{0x88}
	status204 = []byte{0x89}
)

// A server raises the window of a stream beyond its bound, at each moment of a request. The
// request ends with its context at the latest, and the transport goes on working: other requests
// and closing its idle connections do not wait for the broken connection.
func TestWindowOfAStreamBeyondItsBound(t *testing.T) {
	type moment struct {
		name   string
		frames func(f *http2.Framer, stream uint32) error
	}
	raise := func(f *http2.Framer, stream uint32) error { return f.WriteWindowUpdate(stream, math.MaxInt32) }
	for _, m := range []moment{
		{"before the answer", raise},
		{"twice", func(f *http2.Framer, stream uint32) error {
			if err := raise(f, stream); err != nil {
				return err
			}
			return raise(f, stream)
		}},
		{"of the connection", func(f *http2.Framer, _ uint32) error { return raise(f, 0) }},
		{"amid the answer", func(f *http2.Framer, stream uint32) error {
			if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: status200, EndHeaders: true}); err != nil {
				return err
			}
			if err := f.WriteData(stream, false, []byte("x")); err != nil {
				return err
			}
			return raise(f, stream)
		}},
	} {
		t.Run(m.name, func(t *testing.T) {
			fired := make(chan struct{}, 1)
			s := httptest.NewUnstartedServer(http.NotFoundHandler())
			s.TLS = &tls.Config{NextProtos: []string{"h2"}}
			broken := false // the first stream of all has been answered so; the later ones are answered well
			s.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": func(_ *http.Server, c *tls.Conn, _ http.Handler) {
				f := http2.NewFramer(c, c)
				preface := make([]byte, len(http2.ClientPreface))
				if _, err := io.ReadFull(c, preface); err != nil || f.WriteSettings() != nil {
					return
				}
				for {
					frame, err := f.ReadFrame()
					if err != nil {
						return
					}
					h, ok := frame.(*http2.HeadersFrame)
					switch {
					case !ok:
					case broken:
						err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: h.StreamID, BlockFragment: status204, EndHeaders: true, EndStream: true})
					default:
						broken = true
						if err = m.frames(f, h.StreamID); err == nil {
							fired <- struct{}{}
						}
					}
					if err != nil {
						return
					}
				}
			}}
			s.StartTLS()
			defer s.Close()
			tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
			if err := SpeakHTTP2(tr); err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Transport: Transport{Next: tr}}
			post := func() (int, error) {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader([]byte("data")))
				if err != nil {
					return 0, err
				}
				resp, err := client.Do(req)
				if err != nil {
					return 0, err
				}
				defer resp.Body.Close()
				_, err = io.Copy(io.Discard, resp.Body)
				return resp.StatusCode, err
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				if _, err := post(); err == nil {
					t.Error("the request to the broken connection succeeded")
				}
				<-fired
				if status, err := post(); err != nil || status != http.StatusNoContent {
					t.Errorf("the next request: %d, %v", status, err)
				}
				client.CloseIdleConnections()
			}()
			select {
			case <-done:
			case <-time.After(patient):
				t.Fatal("the transport hangs")
			}
		})
	}
}
