package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
)

// prometheus is Debian's, with its remote-write receiver on.
type prometheus struct {
	t    *testing.T
	addr string
	*process
}

// startPrometheus starts one with its own data. window is its out_of_order_time_window,
// "" for none: then it refuses a whole request for one late sample.
func startPrometheus(t *testing.T, window string) *prometheus {
	t.Helper()
	config := "global: {scrape_interval: 1h}\n"
	if window != "" {
		config += "storage: {tsdb: {out_of_order_time_window: " + window + "}}\n"
	}
	return startPrometheusWith(t, config)
}

// startPrometheusWith starts one with a configuration.
func startPrometheusWith(t *testing.T, config string) *prometheus {
	t.Helper()
	program := needs(t, "prometheus")
	dir := t.TempDir()
	p := &prometheus{t: t, addr: fmt.Sprintf("127.0.0.1:%d", freePort(t))}
	p.process = startProcess(t, program, []string{
		"--config.file=" + writeFile(t, filepath.Join(dir, "prometheus.yml"), config),
		"--storage.tsdb.path=" + filepath.Join(dir, "data"),
		"--web.listen-address=" + p.addr,
		"--web.enable-remote-write-receiver",
		"--enable-feature=native-histograms,exemplar-storage",
		"--log.level=warn",
	}, nil)
	ready(t, p.process, "http://"+p.addr+"/-/ready")
	return p
}

// writeURL returns where it takes remote writes.
func (p *prometheus) writeURL() string { return "http://" + p.addr + "/api/v1/write" }

// result is one series of a query's answer; an instant vector has one point each.
type result struct {
	Metric map[string]string `json:"metric"`
	Value  point             `json:"value"`
	Values []point           `json:"values"`
}

// point is [seconds, "value"].
type point struct {
	T int64 // milliseconds
	V float64
}

func (p *point) UnmarshalJSON(b []byte) error {
	var pair [2]any
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	seconds, ok1 := pair[0].(float64)
	text, ok2 := pair[1].(string)
	if !ok1 || !ok2 {
		return fmt.Errorf("not a point: %s", b)
	}
	v, err := strconv.ParseFloat(text, 64)
	p.T, p.V = int64(seconds*1000+0.5), v
	return err
}

// query evaluates PromQL now.
func (p *prometheus) query(expr string) []result {
	p.t.Helper()
	resp, err := httpClient(p.t).Get("http://" + p.addr + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		p.t.Fatalf("query %s: %v", expr, err)
	}
	defer resp.Body.Close()
	var answer struct {
		Status string
		Error  string
		Data   struct{ Result []result }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Status != "success" {
		p.t.Fatalf("query %s: %v %s", expr, err, answer.Error)
	}
	return answer.Data.Result
}

// value returns the answer of a query that has at most one series; ok is false for none.
func (p *prometheus) value(expr string) (v float64, ok bool) {
	p.t.Helper()
	r := p.query(expr)
	switch len(r) {
	case 0:
		return 0, false
	case 1:
		return r[0].Value.V, true
	}
	p.t.Fatalf("query %s has %d answers, want at most one: %v", expr, len(r), r)
	return 0, false
}

// wait waits until a query has an answer.
func (p *prometheus) wait(limit time.Duration, expr string) []result {
	p.t.Helper()
	var r []result
	eventually(p.t, limit, func() string {
		if r = p.query(expr); len(r) == 0 {
			return "prometheus has no answer to " + expr
		}
		return ""
	})
	return r
}

// httpClient returns a client whose connections end with the test.
func httpClient(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	return &http.Client{Transport: tr, Timeout: 10 * time.Second}
}

// handMade returns a remote write of one sample of now, as the specification has it.
func handMade(t *testing.T, name string, v float64, labels ...string) []byte {
	return handMadeAt(t, time.Now(), name, v, labels...)
}

func handMadeAt(t *testing.T, at time.Time, name string, v float64, labels ...string) []byte {
	t.Helper()
	ts := prompb.TimeSeries{
		Labels:  []prompb.Label{{Name: "__name__", Value: name}},
		Samples: []prompb.Sample{{Value: v, Timestamp: at.UnixMilli()}},
	}
	for i := 0; i+1 < len(labels); i += 2 {
		ts.Labels = append(ts.Labels, prompb.Label{Name: labels[i], Value: labels[i+1]})
	}
	raw, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{ts}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return snappy.Encode(nil, raw)
}

// post sends a remote write and returns the status, 0 and the error if there was no
// answer.
func post(t *testing.T, c *http.Client, to, token string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req)
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
