package client

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"hwsagent/remotewrite/wire"
)

// A request says how it is compressed, by vmagent's headers, and the answer who gave it.
func TestZstdRequest(t *testing.T) {
	var got *http.Request
	var body bytes.Buffer
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body.Reset()
		_, _ = body.ReadFrom(r.Body)
		if r.URL.Path == "/victoria" {
			w.Header().Set("X-Server-Hostname", "vm-1")
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer s.Close()
	for path, is := range map[string]bool{"/victoria": true, "/other": false} {
		c := newClient(t, "url: "+s.URL+path, "", Options{})
		var e wire.Encoder
		for _, tc := range []struct {
			by               wire.Compression
			encoding, theirs string
			ours             string
			accepted         bool
		}{
			{wire.Zstd, "zstd", "1", "", is},
			{wire.Snappy, "snappy", "", "0.1.0", true},
		} {
			e.Begin(wire.V1, tc.by)
			sent := e.AppendBody(nil)
			a := c.Send(t.Context(), Request{Body: sent, Compression: tc.by, Samples: 1})
			h := got.Header
			if h.Get("Content-Encoding") != tc.encoding || h.Get("X-VictoriaMetrics-Remote-Write-Version") != tc.theirs ||
				h.Get("X-Prometheus-Remote-Write-Version") != tc.ours || h.Get("Content-Type") != "application/x-protobuf" {
				t.Errorf("%v: headers %v", tc.by, h)
			}
			if !bytes.Equal(body.Bytes(), sent) {
				t.Errorf("%v: another body", tc.by)
			}
			if a.VictoriaMetrics != is || a.Accepted() != tc.accepted || a.Compression != tc.by {
				t.Errorf("%s, %v: answer %+v", path, tc.by, a)
			}
		}
	}
}
