package agent

import (
	"bytes"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
)

// pushOne sends one sample of the series to a receiver by remote write, and returns the answer's status.
func pushOne(t *testing.T, address, name string, at int64) int {
	t.Helper()
	body, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels: []prompb.Label{{Name: "__name__", Value: name}}, Samples: []prompb.Sample{{Value: 1, Timestamp: at}},
	}}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/api/v1/write", bytes.NewReader(snappy.Encode(nil, body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Encoding", "snappy")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// A receiver begins and ends with a reload; one that changes keeps its address, one that
// does not keeps its counts.
func TestReceiversReload(t *testing.T) {
	sink := newSink(t)
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	set := func(extra string) {
		r.extra = extra
		r.configure(entry("a", sink.URL, ""))
		if r.Agent != nil {
			if err := r.Reload(); err != nil {
				t.Fatal(err)
			}
		}
	}
	set("")
	startAgentWith(t, r, t.TempDir(), "")
	if n := len(r.Status().Receivers); n != 0 {
		t.Fatalf("%d receivers run that nobody asked for", n)
	}
	const plain = "receivers: {remote_write: {listen: \"127.0.0.1:0\"}}\n"
	set(plain)
	s := r.Status().Receivers[0]
	if code := pushOne(t, s.Listen, "x", 1); code != 204 {
		t.Errorf("a write: %d", code)
	}
	set(plain)
	if now := r.Status().Receivers[0]; now.Samples != 1 || now.Listen != s.Listen {
		t.Errorf("unchanged, and yet %+v", now)
	}
	set("receivers: {remote_write: {listen: \"127.0.0.1:0\", limits: {active_series: 1}}}\n")
	now := r.Status().Receivers[0]
	if code := pushOne(t, now.Listen, "x", 2); code != 204 || now.Listen != s.Listen {
		t.Errorf("changed: %d at %s, was %s", code, now.Listen, s.Listen)
	}
	if code := pushOne(t, now.Listen, "y", 2); code != 400 {
		t.Errorf("a series too many: %d", code)
	}
	if now = r.Status().Receivers[0]; now.RefusedSamples["new_series"] != 1 || now.RefusedRequests["invalid_sample"] != 1 || now.Samples != 1 {
		t.Errorf("%+v", now)
	}
	if _, err := r.registry.Gather(); err != nil {
		t.Error(err)
	}
	set("")
	if n := len(r.Status().Receivers); n != 0 {
		t.Errorf("%d receivers are left", n)
	}
}

// What is pushed comes into the log each interval with its own labels, and ends when it is
// deleted.
func TestPushgatewayRounds(t *testing.T) {
	sink := newSink(t)
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	r.extra = "receivers: {pushgateway: {listen: \"127.0.0.1:0\", interval: 20ms}}\n"
	r.configure(entry("a", sink.URL, ""))
	startAgentWith(t, r, t.TempDir(), "")
	push := func(method, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.Status().Receivers[0].Listen+"/metrics/job/j", bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if code := push(http.MethodPut, "hwsagent_canary 1000000\n"); code != 200 {
		t.Fatalf("PUT: %d", code)
	}
	has := func() bool {
		sink.mu.Lock()
		defer sink.mu.Unlock()
		return slices.Contains(sink.values, 1000000)
	}
	until(t, "it arrives", has)
	if code := push(http.MethodDelete, ""); code != 202 {
		t.Fatalf("DELETE: %d", code)
	}
	until(t, "nothing is left", func() bool {
		for _, in := range r.Status().Inputs {
			if in.Kind == "receiver" && in.Name == "pushgateway" {
				return in.Series == 2 // up and scrape_duration_seconds
			}
		}
		return false
	})
}
