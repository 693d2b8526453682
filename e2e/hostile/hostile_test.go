package hostile

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"golang.org/x/net/http2"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request returns a write with one sample, of either version.
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
		t.Error(err)
	}
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(snappy.Encode(nil, raw)))
	if err != nil {
		t.Error(err)
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
	names := map[string]bool{}
	var all sync.WaitGroup
	room := make(chan struct{}, 24) // most of them wait
	for _, b := range Behaviours() {
		if names[b.Name] {
			t.Errorf("two behaviours are called %q", b.Name)
		}
		names[b.Name] = true
		for _, v2 := range []bool{false, true} {
			room <- struct{}{}
			all.Go(func() {
				defer func() { <-room }()
				if err := try(t, b, certs, v2); err != nil {
					t.Errorf("%s (2.0: %t): %v", b.Name, v2, err)
				}
			})
		}
	}
	all.Wait()
	t.Logf("%d behaviours", len(names))
}

func try(t *testing.T, b Behaviour, certs *Certs, v2 bool) error {
	var stored atomic.Int64
	o := Options{HTTP2: b.HTTP2, Elsewhere: "127.0.0.1:1", Sink: func(all []prompb.TimeSeries) { stored.Add(int64(len(all[0].Samples))) }}
	if b.Secure {
		o.Certs = certs
	}
	s, err := Start(o)
	if err != nil {
		return err
	}
	defer s.Stop()
	if err := s.Play(&b); err != nil {
		return err
	}
	code, err := send(t, s.URL(), certs, v2, 300*time.Millisecond)
	for end := time.Now().Add(20 * time.Second); s.Counts().Fired == 0 && time.Now().Before(end); {
		code, err = send(t, s.URL(), certs, v2, time.Second) // this machine was busy
	}
	switch {
	case s.Counts().Fired == 0:
		return fmt.Errorf("it did not fire: %d %w", code, err)
	case b.State == retrying && code/100 == 2:
		return fmt.Errorf("it was meant to fail: %d", code)
	}
	if err := s.Play(nil); err != nil {
		return err
	}
	before := stored.Load()
	if code, err := send(t, s.URL(), certs, v2, 20*time.Second); code != 204 || stored.Load() == before {
		return fmt.Errorf("when it is well again: %d %w, %d stored", code, err, stored.Load()-before)
	}
	if c := s.Counts(); c.Wrong != "" || !c.Authorizations["Bearer b"] {
		return fmt.Errorf("counts %+v", c)
	}
	return s.Play(&b)
}

// send sends one write over a new connection.
func send(t *testing.T, url string, certs *Certs, v2 bool, limit time.Duration) (int, error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certs.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	if _, err := http2.ConfigureTransports(transport); err != nil { //nolint:staticcheck // net/http's own hangs at one of the behaviours
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	resp, err := transport.RoundTrip(request(t, url, v2).WithContext(ctx))
	if err != nil {
		return 0, err
	}
	_ = resp.Body.Close()
	return resp.StatusCode, nil
}
