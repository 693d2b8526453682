package receivers_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// store returns a protocol for tests: each byte of the body is a series with one sample.
func store(_ http.ResponseWriter, r *receivers.Request) error {
	b := r.Batch()
	defer b.Rollback()
	for i, c := range r.Body {
		if err := b.Series(labels.FromStrings("__name__", "x", "c", fmt.Sprint(i, c)), "x", metadata.Metadata{}); err != nil {
			return err
		}
		if err := b.Append(0, 1, float64(c), nil, nil); err != nil {
			return err
		}
	}
	_, err := b.Commit()
	return err
}

func post(h http.Handler, encoding string, body []byte) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Encoding", encoding)
	h.ServeHTTP(w, r)
	return w
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstded(t testing.TB, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll(b, nil)
}

func framed(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := snappy.NewBufferedWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// compressed is b in an encoding that a body may have.
func compressed(t testing.TB, encoding string, b []byte) []byte {
	t.Helper()
	switch encoding {
	case "snappy":
		return snappy.Encode(nil, b)
	case receivers.SnappyFramed:
		return framed(t, b)
	case "gzip":
		return gzipped(t, b)
	case "zstd":
		return zstded(t, b)
	}
	return b
}

// encodings returns those that every receiver takes.
func encodings() []string { return []string{"", "snappy", receivers.SnappyFramed, "gzip", "zstd"} }

func TestEncodings(t *testing.T) {
	for _, encoding := range encodings() {
		body := compressed(t, encoding, []byte("ab"))
		l := &receivertest.Log{}
		if w := post(l.Gate("x", receivers.DefaultLimits()).Handler(store, nil), encoding, body); w.Code != 200 || len(l.Samples()) != 2 {
			t.Errorf("%q: %d %s, %d samples", encoding, w.Code, w.Body, len(l.Samples()))
		}
	}
}

// A body that decompresses to far more than it is costs no more memory than the bound, and
// nothing of it is stored.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	zeros := make([]byte, 256<<20)
	claims := func(n uint64, rest ...byte) []byte { // a block of snappy that claims n bytes
		var b []byte
		for ; n >= 0x80; n >>= 7 {
			b = append(b, byte(n)|0x80)
		}
		return append(append(b, byte(n)), rest...)
	}
	limits := receivers.DefaultLimits()
	limits.DecodedBytes = 1 << 20
	for _, tc := range []struct {
		name, encoding string
		body           []byte
		status         int
		reason         receivers.Reason
	}{
		{"gzip", "gzip", gzipped(t, zeros), 413, receivers.DecodedTooLong},
		{"zstd", "zstd", zstded(t, zeros), 413, receivers.DecodedTooLong},
		{"snappy", "snappy", snappy.Encode(nil, zeros), 413, receivers.BodyTooLarge},
		{"snappy of 4 MiB", "snappy", snappy.Encode(nil, zeros[:4<<20]), 413, receivers.DecodedTooLong},
		{"snappy claims 4 GiB", "snappy", claims(1<<32-1, 0, 0), 413, receivers.DecodedTooLong},
		{"snappy claims 1 MiB", "snappy", claims(1<<20, 0, 0), 400, receivers.Malformed},
		{"framed", receivers.SnappyFramed, framed(t, zeros), 413, receivers.BodyTooLarge},
		{"framed of 4 MiB", receivers.SnappyFramed, framed(t, zeros[:4<<20]), 413, receivers.DecodedTooLong},
		{"a frame that claims 4 GiB", receivers.SnappyFramed, append(framed(t, nil), append([]byte("\xff\x06\x00\x00sNaPpY\x00\x0a\x00\x00\x00\x00\x00\x00"), claims(1<<32-1)...)...), 400, receivers.Malformed},
		{"a chunk that claims 16 MiB", receivers.SnappyFramed, []byte("\xff\x06\x00\x00sNaPpY\x00\xff\xff\xff"), 400, receivers.Malformed},
		{"a block for frames", receivers.SnappyFramed, snappy.Encode(nil, zeros[:100]), 400, receivers.Malformed},
		{"frames for a block", "snappy", framed(t, zeros[:100]), 400, receivers.Malformed},
		{"gzip in gzip", "gzip, gzip", gzipped(t, gzipped(t, zeros[:1<<20])), 415, receivers.Unsupported},
		{"no gzip", "gzip", []byte("hello"), 400, receivers.Malformed},
		{"cut gzip", "gzip", gzipped(t, []byte("hello"))[:12], 400, receivers.Malformed},
		{"no zstd", "zstd", []byte("hello"), 400, receivers.Malformed},
		{"plain", "", zeros[:2<<20], 413, receivers.DecodedTooLong},
		{"body", "", zeros[:9<<20], 413, receivers.BodyTooLarge},
	} {
		l := &receivertest.Log{}
		g := l.Gate("x", limits)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := post(g.Handler(store, nil), tc.encoding, tc.body)
		runtime.ReadMemStats(&after)
		if w.Code != tc.status || g.Counts().RefusedRequests[tc.reason] != 1 {
			t.Errorf("%s: %d %s, want %d for %s; counted %v", tc.name, w.Code, w.Body, tc.status, tc.reason, g.Counts().RefusedRequests)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 40<<20 {
			t.Errorf("%s: %d MiB were allocated", tc.name, grown>>20)
		}
		if n := len(l.Samples()); n > 0 {
			t.Errorf("%s: %d samples are stored", tc.name, n)
		}
	}
}

func TestBoundsOfRequests(t *testing.T) {
	name := func(n int) labels.Labels { return labels.FromStrings("__name__", "x", strings.Repeat("n", n), "v") }
	value := func(n int) labels.Labels { return labels.FromStrings("__name__", "x", "n", strings.Repeat("v", n)) }
	limits := receivers.DefaultLimits()
	limits.Series, limits.Samples, limits.Labels, limits.LabelNameBytes, limits.LabelValueBytes = 2, 3, 3, 10, 20
	for reason, series := range map[receivers.Reason][]labels.Labels{
		receivers.TooManySeries:  {name(1), name(2), name(3)},
		receivers.TooManySamples: {name(1), value(20)},
		"":                       {name(10)},
	} {
		l := &receivertest.Log{}
		g := l.Gate("x", limits)
		w := post(g.Handler(func(_ http.ResponseWriter, r *receivers.Request) error {
			b := r.Batch()
			defer b.Rollback()
			for _, ls := range series {
				if err := b.Series(ls, "", metadata.Metadata{}); err != nil {
					return err
				}
				for i := range map[bool]int{true: 2, false: 1}[reason == receivers.TooManySamples] {
					if err := b.Append(0, int64(i), 1, nil, nil); err != nil {
						return err
					}
				}
			}
			_, err := b.Commit()
			return err
		}, nil), "", []byte("x"))
		_, rollbacks := l.Counts()
		if reason == "" {
			if w.Code != 200 || len(l.Samples()) != 1 {
				t.Errorf("within the limits: %d %s", w.Code, w.Body)
			}
		} else if w.Code/100 != 4 || g.Counts().RefusedRequests[reason] != 1 || len(l.Samples()) != 0 || rollbacks != 1 {
			t.Errorf("%s: %d %s, counted %v, %d stored", reason, w.Code, w.Body, g.Counts().RefusedRequests, len(l.Samples()))
		}
	}
}

// An invalid sample is refused by itself, and reported.
func TestSingleSamples(t *testing.T) {
	limits := receivers.DefaultLimits()
	limits.ActiveSeries = 2
	l := &receivertest.Log{}
	g := l.Gate("x", limits)
	w := post(g.Handler(func(_ http.ResponseWriter, r *receivers.Request) error {
		b := r.Batch()
		defer b.Rollback()
		for _, ls := range []labels.Labels{
			labels.FromStrings("__name__", "a"), labels.FromStrings("job", "nameless"), labels.FromStrings("__name__", "b", "l", "\xff"),
			labels.FromStrings("__name__", "b"), labels.FromStrings("__name__", "c"),
		} {
			if err := b.Series(ls, "", metadata.Metadata{}); err != nil {
				return err
			}
			if err := b.Append(0, 1, 1, nil, nil); err != nil {
				return err
			}
		}
		_, err := b.Commit()
		return err
	}, nil), "", nil)
	c := g.Counts()
	if w.Code != 400 || len(l.Samples()) != 2 || c.Samples != 2 || c.RefusedSamples[receivers.InvalidLabels] != 2 || c.RefusedSamples[receivers.NewSeries] != 1 {
		t.Errorf("%d %s; %+v; stored %v", w.Code, w.Body, c, l.Samples())
	}
	if !strings.Contains(w.Body.String(), "3 of 5 samples are refused") || !strings.Contains(w.Body.String(), "active_series") {
		t.Errorf("the answer is %q", w.Body)
	}
}

// Relabelling comes before the limit of series; samples that it drops are counted but are not an error, and their
// exemplars are dropped with them. A series left without a name, or with an invalid label, is refused.
func TestRelabelling(t *testing.T) {
	limits := receivers.DefaultLimits()
	limits.ActiveSeries = 1
	l := &receivertest.Log{}
	g := l.Gate("x", limits, receivertest.Rules(t, `
- {source_labels: [__name__], regex: noise, action: drop}
- {source_labels: [__name__], regex: nameless, target_label: __name__, replacement: ""}
- {regex: "odd(.*)", action: labelmap, replacement: "$1"}
- {regex: "id|nothing", action: labeldrop}
`)...)
	send := func(series ...labels.Labels) *httptest.ResponseRecorder {
		return post(g.Handler(func(_ http.ResponseWriter, r *receivers.Request) error {
			b := r.Batch()
			defer b.Rollback()
			for _, ls := range series {
				if err := errors.Join(b.Series(ls, "", metadata.Metadata{}), b.Append(0, 1, 1, nil, nil), b.AppendExemplar(exemplar.Exemplar{})); err != nil {
					return err
				}
			}
			_, err := b.Commit()
			return err
		}, nil), "", nil)
	}
	named := func(name string, more ...string) labels.Labels {
		return labels.FromStrings(append(more, "__name__", name)...)
	}
	if w := send(named("noise"), named("noise", "n", "2"), named("a", "id", "1"), named("a", "id", "2")); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got := l.Samples(); len(got) != 4 || got[0].Labels != `{__name__="a"}` || got[2].Labels != got[0].Labels {
		t.Errorf("stored %v", got)
	}
	if w := send(named("nameless"), named("nameless", "nothing", "x"), named("odd", "odd", "x")); w.Code != 400 ||
		!strings.Contains(w.Body.String(), "3 of 3") || !strings.Contains(w.Body.String(), "after metric_relabel_configs it has no name") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	c := g.Counts()
	if c.RefusedSamples[receivers.Relabelled] != 2 || c.RefusedSamples[receivers.InvalidLabels] != 3 || c.RefusedSamples[receivers.ExemplarUnlogged] != 3 || l.Filtered() != 2 {
		t.Errorf("%+v; %d filtered", c, l.Filtered())
	}
}

func TestLogRefuses(t *testing.T) {
	for reason, fail := range map[receivers.Reason]error{receivers.LogFull: fmt.Errorf("wrapped: %w", receivertest.ErrFull), receivers.LogFailed: errors.New("input/output error")} {
		l := &receivertest.Log{}
		l.Fail(fail)
		g := l.Gate("x", receivers.DefaultLimits())
		w := post(g.Handler(store, nil), "", []byte("ab"))
		if w.Code != 503 || w.Header().Get("Retry-After") != "10" || g.Counts().RefusedRequests[reason] != 1 || g.Counts().Samples != 0 {
			t.Errorf("%s: %d %v %s", reason, w.Code, w.Header(), w.Body)
		}
	}
}

// pipes is a listener in memory, whose connections keep to deadlines in virtual time.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}
func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

// A thousand clients that send a byte now and then hold neither a slot nor much memory:
// others are served at once, and each slow one is let go after its time.
func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &receivertest.Log{}
		g := l.Gate("x", receivers.DefaultLimits())
		p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		srv := &http.Server{Handler: g.Handler(store, nil), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(p) }()
		dial := func() net.Conn {
			client, server := net.Pipe()
			p.conns <- server
			return client
		}
		const slow = 1000
		var wg sync.WaitGroup
		for i := range slow {
			c := dial()
			wg.Go(func() {
				defer c.Close()
				go func() { _, _ = io.Copy(io.Discard, c) }() // the answer
				if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"); err != nil {
					return
				}
				for { // one stalls at once, one trickles
					if _, err := c.Write([]byte("x")); err != nil {
						return
					}
					time.Sleep(time.Duration(1+i%10) * time.Second)
				}
			})
		}
		synctest.Wait()
		begin := time.Now()
		c := dial()
		go func() { _, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab") }()
		answer := make([]byte, 12)
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "HTTP/1.1 200" || time.Since(begin) > time.Second {
			t.Errorf("a quick request among slow ones: %q %v after %s", answer, err, time.Since(begin))
		}
		c.Close()
		wg.Wait()
		if took := time.Since(begin); took > 45*time.Second {
			t.Errorf("the slow ones were let go after %s", took)
		}
		if n := g.Counts().RefusedRequests[receivers.Slow]; n != slow {
			t.Errorf("%d requests count as slow, want %d: %v", n, slow, g.Counts().RefusedRequests)
		}
		_ = srv.Close()
		<-served
	})
}

// A body that no handler reads, since its path is none, is not waited for without end: the
// server would, before it answers, and the connection would be one of those that others need.
func TestBodyThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		srv := receivers.HTTPServer(receivers.Spec{Listen: "127.0.0.1:1", Gate: (&receivertest.Log{}).Gate("x", receivers.DefaultLimits()), Handler: http.NotFoundHandler()})
		served := make(chan error, 1)
		go func() { served <- srv.Serve(p) }()
		client, server := net.Pipe()
		p.conns <- server
		begin := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = io.Copy(io.Discard, client) // until the server closes it
		}()
		if _, err := io.WriteString(client, "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("the connection was kept for %s", took)
			}
		case <-time.After(time.Hour):
			t.Error("the connection is kept for ever")
		}
		_ = client.Close()
		if err := srv.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		<-served
	})
}

func TestSet(t *testing.T) {
	l := &receivertest.Log{}
	set := receivers.NewSet(slog.New(slog.DiscardHandler), time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	apply := func(identity string, h http.HandlerFunc) error {
		p, err := set.Plan([]receivers.Spec{{Name: "x", Identity: identity, Listen: "127.0.0.1:0", Gate: l.Gate("x", receivers.DefaultLimits()), Handler: h}})
		if err == nil {
			set.Apply(p)
		}
		return err
	}
	says := func(word string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, word) }
	}
	if err := apply("1", says("one")); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(done)
		set.Run(ctx)
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	get := func(host string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+set.Status()[0].Address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	address := set.Status()[0].Address
	if _, said := get(""); said != "one" {
		t.Errorf("got %q", said)
	}
	if code, _ := get("evil.example"); code != http.StatusMisdirectedRequest {
		t.Errorf("another host's name: %d", code)
	}
	// A changed one goes on at the same socket, an unchanged one is the same.
	for _, tc := range []struct{ identity, says, want string }{{"2", "two", "two"}, {"2", "never", "two"}} {
		if err := apply(tc.identity, says(tc.says)); err != nil {
			t.Fatal(err)
		}
		if _, said := get(""); said != tc.want || set.Status()[0].Address != address {
			t.Errorf("got %q at %s, want %q at %s", said, set.Status()[0].Address, tc.want, address)
		}
	}
	for listen, want := range map[string]string{"0.0.0.0:0": "other hosts", "x": "not host:port", address: ""} {
		// Beside the one that goes on.
		p, err := set.Plan([]receivers.Spec{{Name: "x", Identity: "2", Listen: "127.0.0.1:0"}, {Name: "y", Identity: "y", Listen: listen}})
		switch {
		case listen == address:
			if err == nil {
				t.Error("an address in use is taken")
				_ = p.Abandon()
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v", listen, err)
		}
	}
	cancel()
	<-done
}
