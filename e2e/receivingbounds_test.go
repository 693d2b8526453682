package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"hwsagent/e2e/results"
)

// TestReceivingIsBounded: bombs, malformed bodies and a thousand slow clients at each
// receiver cost bounded memory, and neither other senders nor probes.
func TestReceivingIsBounded(t *testing.T) {
	in := startIntake(t, "1s", ", limits: {body_bytes: 2MiB, decoded_bytes: 8MiB, memory_bytes: 32MiB}",
		"  - {name: canary, type: canary, interval: 100ms, timeout: 100ms}")
	if code, text := send(t, http.MethodPost, "http://"+in.text+"/api/v1/import/prometheus", "", "", []byte("warm 1\n")); code != 204 {
		t.Fatalf("%d %s", code, text)
	}
	before := in.rss()
	var peak atomic.Uint64
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			if now := in.rss(); now > peak.Load() {
				peak.Store(now)
			}
			time.Sleep(20 * time.Millisecond) // the pace of looking
		}
	})
	defer func() { cancel(); watching.Wait() }()

	// A thousand who promise a body and send a little of it.
	const slow = 1000
	var conns []net.Conn
	for i := range slow {
		to := []string{in.write + "/api/v1/write", in.push + "/metrics/job/slow", in.text + "/api/v1/import/prometheus", in.otlp + "/v1/metrics"}[i%4]
		host, path, _ := strings.Cut(to, "/")
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		conns = append(conns, c)
		fmt.Fprintf(c, "POST /%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-protobuf\r\nContent-Length: 1000000\r\n\r\nslow", path, host)
	}
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()

	zeros := make([]byte, 512<<20)
	var gz bytes.Buffer
	z := gzip.NewWriter(&gz)
	_, _ = z.Write(zeros)
	_ = z.Close()
	zs, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zst := zs.EncodeAll(zeros, nil)
	zs.Close()
	bombs := 0
	for range 3 {
		for _, to := range []string{
			in.write + "/api/v1/write", in.push + "/metrics/job/bomb", in.text + "/api/v1/import/prometheus", in.otlp + "/v1/metrics",
		} {
			for encoding, bomb := range map[string][]byte{
				"gzip": gz.Bytes(), "zstd": zst, "snappy": {0xff, 0xff, 0xff, 0xff, 0x0f, 0},
				"": bytes.Repeat([]byte{0xff}, 1<<20),
			} {
				bombs++
				if code, text := send(t, http.MethodPost, "http://"+to, "application/x-protobuf", encoding, bomb); code/100 != 4 {
					t.Errorf("%s %s: %d %.200s", to, encoding, code, text)
				}
			}
		}
	}
	// In the middle of that, everybody else is served, and at once.
	for i := range 20 {
		name := url.QueryEscape(fmt.Sprint(i))
		if code, text := send(t, http.MethodPost, "http://"+in.text+"/api/v1/import/prometheus?extra_label=i="+name, "", "", []byte("good 1\n")); code != 204 {
			t.Errorf("a good request: %d %s", code, text)
		}
		if code, text := send(t, http.MethodPost, "http://"+in.write+"/api/v1/write", "application/x-protobuf", "snappy", handMade(t, "good", 1, "w", name)); code != 204 {
			t.Errorf("a good write: %d %s", code, text)
		}
	}
	rounds := len(in.values("hwsagent_canary{instance=" + hostname(t) + ",job=canary,series=0}"))
	eventually(t, 20*time.Second, func() string {
		if len(in.values("hwsagent_canary{instance="+hostname(t)+",job=canary,series=0}")) <= rounds {
			in.mu.Lock()
			defer in.mu.Unlock()
			return fmt.Sprintf("no more rounds of the probe arrive: %d series", len(in.series))
		}
		return ""
	})
	// Each slow one is told, or let go, without sending any more.
	_ = conns[0].SetReadDeadline(time.Now().Add(30 * time.Second))
	answer := make([]byte, 12)
	if _, err := io.ReadFull(conns[0], answer); err != nil || string(answer) != "HTTP/1.1 408" {
		t.Errorf("a slow client got %q %v", answer, err)
	}
	if status := stalledCall(t, in.grpc); status != "4" { // DEADLINE_EXCEEDED
		t.Errorf("a slow call of gRPC got the status %q", status)
	}
	grown := int64(peak.Load()) - int64(before)
	t.Logf("%d slow clients, %d bombs: %d MiB resident before, %d MiB at most", slow, bombs, before>>20, peak.Load()>>20)
	if grown > 200<<20 {
		t.Errorf("the agent grew by %d MiB", grown>>20)
	}
	results.Add(t, results.Line{What: "1,000 slow clients and bombs at the receivers", Count: slow + bombs, Figures: map[string]float64{"resident_mib": float64(peak.Load() >> 20), "grown_mib": float64(grown >> 20)}})
}

// stalledCall begins a call of gRPC, sends a little and waits for its status.
func stalledCall(t *testing.T, to string) string {
	t.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	defer transport.CloseIdleConnections()
	body, more := io.Pipe()
	defer more.Close()
	go func() { _, _ = more.Write([]byte("slow")) }()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+to+"/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	resp, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.Header.Get("Grpc-Status")
}

func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}
