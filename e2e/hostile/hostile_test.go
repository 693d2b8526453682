package hostile

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request is a write with one sample, of either version.
func request(t *testing.T, url string, v2 bool) *http.Request {
	t.Helper()
	var raw []byte
	var err error
	contentType := "application/x-protobuf"
	if v2 {
		contentType += ";proto=io.prometheus.write.v2.Request"
		raw, err = (&writev2.Request{Symbols: []string{"", "__name__", "m"}, Timeseries: []writev2.TimeSeries{{LabelsRefs: []uint32{1, 2}, Samples: []writev2.Sample{{Value: 1, Timestamp: 2}}}}}).Marshal()
	} else {
		raw, err = (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{Labels: []prompb.Label{{Name: "__name__", Value: "m"}}, Samples: []prompb.Sample{{Value: 1, Timestamp: 2}}}}}).Marshal()
	}
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(snappy.Encode(nil, raw)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("Authorization", "Bearer b")
	return req
}

// Every behaviour fires, its server can be made well again, and stopped while it plays.
func TestBehaviours(t *testing.T) {
	certs, err := NewCerts()
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certs.CA)
	names := map[string]bool{}
	for _, b := range Behaviours() {
		if names[b.Name] {
			t.Errorf("two behaviours are called %q", b.Name)
		}
		names[b.Name] = true
		for _, v2 := range []bool{false, true} {
			t.Run(b.Name, func(t *testing.T) {
				t.Parallel()
				var stored atomic.Int64
				o := Options{HTTP2: b.HTTP2, Elsewhere: "127.0.0.1:1", Sink: func(all []prompb.TimeSeries) { stored.Add(int64(len(all[0].Samples))) }}
				if b.Secure {
					o.Certs = certs
				}
				s, err := Start(o)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Stop()
				send := func(limit time.Duration) (int, error) {
					transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: b.HTTP2}
					defer transport.CloseIdleConnections()
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					resp, err := transport.RoundTrip(request(t, s.URL(), v2).WithContext(ctx))
					if err != nil {
						return 0, err
					}
					_ = resp.Body.Close()
					return resp.StatusCode, nil
				}
				if err := s.Play(&b); err != nil {
					t.Fatal(err)
				}
				code, err := send(300 * time.Millisecond)
				for end := time.Now().Add(10 * time.Second); s.Counts().Fired == 0 && time.Now().Before(end); {
					code, err = send(time.Second) // this machine was busy
				}
				if s.Counts().Fired == 0 {
					t.Errorf("it did not fire: %d %v", code, err)
				}
				if (b.State != "") && code/100 == 2 && err == nil && b.State != held {
					t.Errorf("it was meant to fail: %d", code)
				}
				if err := s.Play(nil); err != nil {
					t.Fatal(err)
				}
				before := stored.Load()
				if code, err := send(10 * time.Second); code != 204 || stored.Load() == before {
					t.Errorf("when it is well again: %d %v, %d stored", code, err, stored.Load()-before)
				}
				if c := s.Counts(); c.Wrong != "" || c.Authorizations["Bearer b"] == false {
					t.Errorf("%+v", c)
				}
				if err := s.Play(&b); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
	t.Logf("%d behaviours", len(names))
}
