//go:build linux

package main

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// message1 returns a request of 1.0 with 3 samples, a histogram, and metadata.
func message1(t *testing.T) []byte {
	t.Helper()
	raw, err := (&prompb.WriteRequest{
		Timeseries: []prompb.TimeSeries{
			{Labels: []prompb.Label{{Name: "__name__", Value: "a"}}, Samples: []prompb.Sample{{Value: 1, Timestamp: 1}, {Value: 2, Timestamp: 2}}},
			{Labels: []prompb.Label{{Name: "__name__", Value: "b"}}, Samples: []prompb.Sample{{Value: 0, Timestamp: 1}}, Exemplars: []prompb.Exemplar{{Value: 1}}},
			{Labels: []prompb.Label{{Name: "__name__", Value: "c"}}, Histograms: []prompb.Histogram{{Sum: 1, Schema: 3, Timestamp: 5}}},
		},
		Metadata: []prompb.MetricMetadata{{MetricFamilyName: "a", Help: "help"}},
	}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// message2 returns the like of 2.0, with fields that are no messages.
func message2(t *testing.T) []byte {
	t.Helper()
	raw, err := (&writev2.Request{
		Symbols: []string{"", "__name__", "a", "b"},
		Timeseries: []writev2.TimeSeries{
			{LabelsRefs: []uint32{1, 2}, Samples: []writev2.Sample{{Value: 1, Timestamp: 1, StartTimestamp: 1}, {Value: 2, Timestamp: 2}}, Metadata: writev2.Metadata{HelpRef: 3}},
			{LabelsRefs: []uint32{1, 3}, Histograms: []writev2.Histogram{{Sum: 1, Timestamp: 1}}},
		},
	}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestCountSamples(t *testing.T) {
	for _, tc := range []struct {
		version             string
		raw                 []byte
		samples, histograms int
	}{
		{v1, message1(t), 3, 1},
		{v2, message2(t), 2, 1},
		{v1, nil, 0, 0},
	} {
		samples, histograms, err := countSamples(tc.raw, tc.version)
		if err != nil || samples != tc.samples || histograms != tc.histograms {
			t.Errorf("%s: %d samples and %d histograms, want %d and %d: %v", tc.version, samples, histograms, tc.samples, tc.histograms, err)
		}
	}
}

// TestCountSamplesRefusesWhatIsCut: any message that is cut in its last field is an error.
func TestCountSamplesRefusesWhatIsCut(t *testing.T) {
	raw := message1(t)
	for n := len(raw) - 8; n < len(raw); n++ {
		if _, _, err := countSamples(raw[:n], v1); err == nil {
			t.Errorf("%d of %d bytes were counted", n, len(raw))
		}
	}
	for _, broken := range [][]byte{{0x0b}, {0x80}, {0x08, 0x80}, {0x09, 1, 2}, {0x0d, 1}, bytes.Repeat([]byte{0xff}, 11)} {
		if _, _, err := countSamples(broken, v1); err == nil {
			t.Errorf("% x was counted", broken)
		}
	}
}

// startReceiver starts a receiver and ends it with the test.
func startReceiver(t *testing.T, version string, withZstd bool) *receiver {
	t.Helper()
	r, err := newReceiver(version, withZstd)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.down(); r.close() })
	return r
}

func post(t *testing.T, client *http.Client, url, contentType, encoding string, body []byte) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Content-Encoding", encoding)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp
}

func TestReceiverTakesOnlyWhatIsMeasured(t *testing.T) {
	const (
		type1 = "application/x-protobuf"
		type2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"
	)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	snappy1, snappy2 := snappy.Encode(nil, message1(t)), snappy.Encode(nil, message2(t))
	zstd1 := encoder.EncodeAll(message1(t), nil)
	for _, tc := range []struct {
		name           string
		version        string
		zstd           bool
		what, encoding string
		body           []byte
		status         int
		samples        int64
	}{
		{"1.0", v1, false, type1, "snappy", snappy1, http.StatusNoContent, 4},
		{"1.0 that names itself", v1, false, type1 + ";proto=prometheus.WriteRequest", "snappy", snappy1, http.StatusNoContent, 4},
		{"zstd", v1, true, type1, "zstd", zstd1, http.StatusNoContent, 4},
		{"snappy before zstd is used", v1, true, type1, "snappy", snappy1, http.StatusNoContent, 4},
		{"2.0", v2, false, type2, "snappy", snappy2, http.StatusNoContent, 3},
		{"zstd where it is not asked for", v1, false, type1, "zstd", zstd1, http.StatusUnsupportedMediaType, 0},
		{"zstd of 2.0", v2, true, type2, "zstd", zstd1, http.StatusUnsupportedMediaType, 0},
		{"2.0 to 1.0", v1, false, type2, "snappy", snappy2, http.StatusUnsupportedMediaType, 0},
		{"1.0 to 2.0", v2, false, type1, "snappy", snappy1, http.StatusUnsupportedMediaType, 0},
		{"not snappy", v1, false, type1, "snappy", []byte{0xff}, http.StatusBadRequest, 0},
		{"snappy that promises too much", v1, false, type1, "snappy", []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, http.StatusBadRequest, 0},
		{"not zstd", v1, true, type1, "zstd", snappy1, http.StatusBadRequest, 0},
		{"not protobuf", v1, false, type1, "snappy", snappy.Encode(nil, []byte{0x0b}), http.StatusBadRequest, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := startReceiver(t, tc.version, tc.zstd)
			client := &http.Client{Timeout: 10 * time.Second}
			defer client.CloseIdleConnections()
			resp := post(t, client, r.url(), tc.what, tc.encoding, tc.body)
			if resp.StatusCode != tc.status {
				t.Errorf("status %d, want %d", resp.StatusCode, tc.status)
			}
			if got := r.samples.Load(); got != tc.samples {
				t.Errorf("%d samples, want %d", got, tc.samples)
			}
			if named := resp.Header.Get("X-Server-Hostname") != ""; named != tc.zstd {
				t.Errorf("the answer says that it is VictoriaMetrics: %t, want %t", named, tc.zstd)
			}
			encodings, refused := r.seen()
			if tc.status != http.StatusNoContent {
				if r.requests.Load() != 0 || r.wire.Load() != 0 || len(encodings) != 0 || len(refused) != 1 {
					t.Errorf("a refused request counts: %d, %d bytes, %v, refused %v", r.requests.Load(), r.wire.Load(), encodings, refused)
				}
				return
			}
			if r.requests.Load() != 1 || r.wire.Load() != int64(len(tc.body)) || encodings[tc.version+" "+tc.encoding] != 1 {
				t.Errorf("%d requests, %d bytes of %d, %v", r.requests.Load(), r.wire.Load(), len(tc.body), encodings)
			}
			if written := resp.Header.Get("X-Prometheus-Remote-Write-Samples-Written"); (written == "2") != (tc.version == v2) {
				t.Errorf("the answer says that %q samples were written", written)
			}
		})
	}
}

func TestReceiverComesBackOnItsPort(t *testing.T) {
	r := startReceiver(t, v1, false)
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	url := r.url()
	post(t, client, url, "application/x-protobuf", "snappy", snappy.Encode(nil, message1(t)))
	if r.first.Load() == 0 {
		t.Fatal("the first sample was not noted")
	}
	r.down()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
		t.Fatal("a receiver that is down answers")
	}
	if err := r.up(); err != nil {
		t.Fatal(err)
	}
	if r.url() != url || r.first.Load() != 0 {
		t.Errorf("it came back as %s, with a first sample at %d; want %s and none", r.url(), r.first.Load(), url)
	}
	post(t, client, url, "application/x-protobuf", "snappy", snappy.Encode(nil, message1(t)))
	if got := r.samples.Load(); got != 8 || r.first.Load() == 0 {
		t.Errorf("%d samples in all, want 8, and a first one after it came back", got)
	}
}
