package receiver

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func oneSeries(name string, samples ...prompb.Sample) prompb.TimeSeries {
	return prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: name}, {Name: "series", Value: "0"}}, Samples: samples}
}

func encode(t *testing.T, series ...prompb.TimeSeries) []byte {
	t.Helper()
	raw, err := (&prompb.WriteRequest{Timeseries: series}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return snappy.Encode(nil, raw)
}

// post sends one body as a remote-write sender does and returns status and text; the
// status is 0 when there was no answer.
func post(t *testing.T, client *http.Client, url, token string, body []byte, change ...func(http.Header)) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, f := range change {
		f(req.Header)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func start(t *testing.T, o Options) *Receiver {
	t.Helper()
	r := New(o)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}

func newClient(t *testing.T, conf *tls.Config) *http.Client {
	t.Helper()
	tr := &http.Transport{TLSClientConfig: conf}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func TestMutualTLSAndToken(t *testing.T) {
	pki, err := NewPKI(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	token := readToken(t, pki)
	r := start(t, Options{TLS: pki.ServerTLS(), Tokens: []string{token}})
	conf, err := pki.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	good := newClient(t, conf)
	body := encode(t, oneSeries("a", prompb.Sample{Value: 1, Timestamp: 1}))

	if status, text := post(t, good, r.URL(), token, body); status != 204 {
		t.Fatalf("with certificate and token: %d %s", status, text)
	}
	if status, _ := post(t, good, r.URL(), "wrong", body); status != 401 {
		t.Errorf("with a wrong token: %d, want 401", status)
	}
	if status, _ := post(t, good, r.URL(), "", body); status != 401 {
		t.Errorf("without a token: %d, want 401", status)
	}
	without := conf.Clone()
	without.Certificates = nil
	if status, text := post(t, newClient(t, without), r.URL(), token, body); status != 0 {
		t.Errorf("without a certificate: %d %s, want no answer", status, text)
	}
	stranger, err := NewPKI(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	foreign := conf.Clone()
	cert, err := tls.LoadX509KeyPair(stranger.CertFile, stranger.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	foreign.Certificates = []tls.Certificate{cert}
	if status, text := post(t, newClient(t, foreign), r.URL(), token, body); status != 0 {
		t.Errorf("with another authority's certificate: %d %s, want no answer", status, text)
	}

	if got := r.Samples(); got != 1 {
		t.Errorf("%d samples stored, want 1", got)
	}
	seen := r.Seen()
	if len(seen) != 3 || seen[0].Client != "hwsagent-1" || seen[0].Token != token || seen[0].Samples != 1 {
		t.Errorf("seen: %+v", seen)
	}
}

func TestRotation(t *testing.T) {
	pki, err := NewPKI(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	old := readToken(t, pki)
	r := start(t, Options{TLS: pki.ServerTLS(), Tokens: []string{old}})
	if err := pki.RotateClient("hwsagent-2"); err != nil {
		t.Fatal(err)
	}
	next, err := pki.RotateToken()
	if err != nil {
		t.Fatal(err)
	}
	if next == old || readToken(t, pki) != next {
		t.Errorf("the token was not replaced")
	}
	r.AllowTokens(next)
	conf, err := pki.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, conf)
	if status, _ := post(t, c, r.URL(), old, encode(t)); status != 401 {
		t.Errorf("the old token: %d, want 401", status)
	}
	if status, _ := post(t, c, r.URL(), next, encode(t)); status != 204 {
		t.Errorf("the new token: %d, want 204", status)
	}
	if seen := r.Seen(); seen[1].Client != "hwsagent-2" || !seen[1].Empty {
		t.Errorf("seen: %+v", seen[1])
	}
	for _, f := range []string{pki.CAFile, pki.CertFile, pki.KeyFile, pki.TokenFile, pki.ServerCertFile, pki.ServerKeyFile} {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", f, info, err)
		}
	}
}

func readToken(t *testing.T, p *PKI) string {
	t.Helper()
	b, err := os.ReadFile(p.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func TestBehaviours(t *testing.T) {
	r := start(t, Options{})
	c := newClient(t, nil)
	good := oneSeries("good", prompb.Sample{Value: 1, Timestamp: 1})
	bad := oneSeries("bad", prompb.Sample{Value: 1, Timestamp: 1})
	isBad := func(ts prompb.TimeSeries) bool { return Label(ts, "__name__") == "bad" }
	for _, tc := range []struct {
		name   string
		b      Behaviour
		status int
		text   string
		stored uint64
	}{
		{"accept", Accept, 204, "", 2},
		{"503", Refuse(503, "overloaded"), 503, "overloaded", 0},
		{"slow", Slow(time.Millisecond), 204, "", 2},
		{"refuse whole", RefuseSeries(isBad, "bad series", false), 400, "bad series", 0},
		{"keep good", RefuseSeries(isBad, "bad series", true), 400, "bad series", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r.Behave(tc.b)
			before := r.Samples()
			status, text := post(t, c, r.URL(), "", encode(t, good, bad))
			if status != tc.status || strings.TrimSpace(text) != tc.text || r.Samples()-before != tc.stored {
				t.Errorf("got %d %q, %d stored; want %d %q, %d", status, text, r.Samples()-before, tc.status, tc.text, tc.stored)
			}
		})
	}
}

// TestHangEndsWithStop proves that a hanging request gets no answer, and that a stopped
// receiver is offline until it is started again at the same address.
func TestHangEndsWithStop(t *testing.T) {
	r := start(t, Options{})
	entered := make(chan struct{}, 1)
	r.Behave(func(q Request) Reply {
		entered <- struct{}{}
		return Hang(q)
	})
	c := newClient(t, nil)
	body := encode(t)
	answered := make(chan int)
	go func() {
		status, _ := post(t, c, r.URL(), "", body)
		answered <- status
	}()
	<-entered
	r.Stop()
	if status := <-answered; status != 0 {
		t.Errorf("a hanging request was answered: %d", status)
	}
	if status, text := post(t, c, r.URL(), "", body); status != 0 {
		t.Errorf("a stopped receiver answered: %d %s", status, text)
	}
	r.Behave(Accept)
	url := r.URL()
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	if r.URL() != url {
		t.Errorf("the address changed from %s to %s", url, r.URL())
	}
	if status, _ := post(t, c, r.URL(), "", body); status != 204 {
		t.Errorf("after a new start: %d", status)
	}
}

func TestMalformedRequestsRefused(t *testing.T) {
	r := start(t, Options{})
	c := newClient(t, nil)
	good := encode(t, oneSeries("a"))
	bomb := []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0} // claims 4 GiB
	twice := oneSeries("a")
	twice.Labels = append(twice.Labels, prompb.Label{Name: "series", Value: "1"})
	nameless := prompb.TimeSeries{Labels: []prompb.Label{{Name: "a", Value: "b"}}}
	set := func(k, v string) func(http.Header) { return func(h http.Header) { h.Set(k, v) } }
	for _, tc := range []struct {
		name   string
		body   []byte
		change func(http.Header)
		status int
	}{
		{"good", good, func(http.Header) {}, 204},
		{"gzip", good, set("Content-Encoding", "gzip"), 415},
		{"json", good, set("Content-Type", "application/json"), 415},
		{"no version", good, func(h http.Header) { h.Del("X-Prometheus-Remote-Write-Version") }, 400},
		{"not snappy", []byte("hello"), func(http.Header) {}, 400},
		{"bomb", bomb, func(http.Header) {}, 400},
		{"not protobuf", snappy.Encode(nil, []byte{0xff}), func(http.Header) {}, 400},
		{"label twice", encode(t, twice), func(http.Header) {}, 400},
		{"no name", encode(t, nameless), func(http.Header) {}, 400},
	} {
		if status, text := post(t, c, r.URL(), "", tc.body, tc.change); status != tc.status {
			t.Errorf("%s: %d %s, want %d", tc.name, status, text, tc.status)
		} else if tc.name == "bomb" && !strings.Contains(text, "at most") {
			t.Errorf("bomb: %q: what it claims was allocated first", text)
		}
	}
	if r.Samples() != 0 {
		t.Errorf("%d samples stored", r.Samples())
	}
}
