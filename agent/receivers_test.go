package agent

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/agent/status"
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
		t.Fatalf("%d receivers run without a configuration", n)
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

// pushGroup calls the pushgateway of an agent that has no other receiver, and returns the answer's status.
func pushGroup(t *testing.T, r *running, method, body string) int {
	t.Helper()
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

// Pushed samples enter the log each interval with their own labels, and end when they are deleted.
func TestPushgatewayRounds(t *testing.T) {
	sink := newSink(t)
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	r.extra = "receivers: {pushgateway: {listen: \"127.0.0.1:0\", interval: 20ms}}\n"
	r.configure(entry("a", sink.URL, ""))
	startAgentWith(t, r, t.TempDir(), "")
	if code := pushGroup(t, r, http.MethodPut, "hwsagent_canary 1000000\n"); code != 200 {
		t.Fatalf("PUT: %d", code)
	}
	has := func() bool {
		sink.mu.Lock()
		defer sink.mu.Unlock()
		return slices.Contains(sink.values, 1000000)
	}
	until(t, "it arrives", has)
	if code := pushGroup(t, r, http.MethodDelete, ""); code != 202 {
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

// A round that takes longer than the interval, here because it has many samples, is not cut off: its last series arrive too.
func TestPushgatewayRoundIsComplete(t *testing.T) {
	sink := newSink(t)
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	r.extra = "receivers: {pushgateway: {listen: \"127.0.0.1:0\", interval: 10ms}}\n"
	r.configure(entry("a", sink.URL, ""))
	startAgentWith(t, r, t.TempDir(), "")
	var body strings.Builder
	const n = 50_000 // reading them takes several intervals
	for i := range n {
		fmt.Fprintf(&body, "pushed{n=\"%d\"} 1\n", i)
	}
	if code := pushGroup(t, r, http.MethodPut, body.String()); code != 200 {
		t.Fatalf("PUT: %d", code)
	}
	until(t, "a round has all samples", func() bool {
		return r.inputOf("pushgateway").Series >= n
	})
	until(t, "a round took longer than the interval, and its end is known", func() bool {
		for _, p := range r.Status().Probes {
			if p.Name == "pushgateway" && p.Skipped > 0 {
				if p.LastError != "" {
					t.Fatalf("the round's error: %s", p.LastError)
				}
				return true
			}
		}
		return false
	})
}

// inputOf returns the input of a receiver.
func (r *running) inputOf(name string) status.InputStatus {
	for _, in := range r.Status().Inputs {
		if in.Kind == receiverKind && in.Name == name {
			return in
		}
	}
	return status.InputStatus{}
}

// Rules come and go with a reload. Samples that they drop are answered with 2xx and counted for the input, in the
// status and the metrics.
func TestReceiverRulesReload(t *testing.T) {
	sink := newSink(t)
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	r.extra = "receivers: {remote_write: {listen: \"127.0.0.1:0\"}}\n"
	r.configure(entry("a", sink.URL, ""))
	startAgentWith(t, r, t.TempDir(), "")
	at := int64(0)
	push := func(name string, stored int, filtered uint64) {
		t.Helper()
		at++
		if code := pushOne(t, r.Status().Receivers[0].Listen, name, at); code != 204 {
			t.Errorf("%s: %d", name, code)
		}
		if in := r.inputOf("remote_write"); in.Series != stored || in.Filtered != filtered {
			t.Errorf("after %s: %+v, want %d series, %d filtered", name, in, stored, filtered)
		}
	}
	push("noise", 1, 0)
	for _, rules := range []string{"{source_labels: [__name__], regex: noise, action: drop}", "{source_labels: [__name__], regex: keep, action: keep}"} {
		r.extra = "receivers:\n  remote_write:\n    listen: 127.0.0.1:0\n    metric_relabel_configs: [" + rules + "]\n"
		r.configure(entry("a", sink.URL, ""))
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		before := r.inputOf("remote_write").Filtered
		push("noise", r.inputOf("remote_write").Series, before+1)
	}
	push("keep", 2, 2)
	push("another", 2, 3)
	if s := r.Status().Receivers[0]; s.RefusedSamples["relabelled"] != 2 || s.ActiveSeries != 1 || len(s.RefusedRequests) != 0 {
		t.Errorf("%+v", s)
	}
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "hwsagent_input_filtered_samples_total" })
	if i < 0 || !slices.ContainsFunc(families[i].Metric, func(m *dto.Metric) bool {
		return m.Label[0].GetValue() == "receiver remote_write" && m.Counter.GetValue() == 3
	}) {
		t.Errorf("the metrics do not have it: %v", families)
	}
}

// Each round relabels the groups, their times of pushes included; what came of it ends with the
// rules, as a deletion ends what comes without them.
func TestPushgatewayRules(t *testing.T) {
	sink := newSink(t)
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	r.extra = `receivers:
  pushgateway:
    listen: 127.0.0.1:0
    interval: 20ms
    metric_relabel_configs:
      - {source_labels: [__name__], regex: noise|push_failure_time_seconds, action: drop}
      - {source_labels: [__name__], regex: push_time_seconds, target_label: __name__, replacement: pushed}
`
	r.configure(entry("a", sink.URL, ""))
	startAgentWith(t, r, t.TempDir(), "")
	names := func() (all []string) {
		for _, s := range r.inputs.Newest(nil) {
			if s.Labels.Get("job") == "j" {
				all = append(all, s.Labels.Get("__name__"))
			}
		}
		slices.Sort(all)
		return all
	}
	if code := pushGroup(t, r, http.MethodPut, "kept 1\nnoise 2\n"); code != 200 {
		t.Fatalf("PUT: %d", code)
	}
	until(t, "two rounds are relabelled", func() bool { return r.inputOf("pushgateway").Filtered >= 4 })
	if got := names(); !slices.Equal(got, []string{"kept", "pushed"}) {
		t.Errorf("the log has %v", got)
	}
	r.extra = "receivers: {pushgateway: {listen: \"127.0.0.1:0\", interval: 20ms}}\n"
	r.configure(entry("a", sink.URL, ""))
	if err := r.Reload(); err != nil {
		t.Fatal(err)
	}
	until(t, "the rules' own series have ended", func() bool {
		return slices.Equal(names(), []string{"kept", "noise", "push_failure_time_seconds", "push_time_seconds"})
	})
	if code := pushGroup(t, r, http.MethodDelete, ""); code != 202 {
		t.Fatalf("DELETE: %d", code)
	}
	until(t, "nothing is left", func() bool { return len(names()) == 0 })
}
