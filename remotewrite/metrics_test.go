package remotewrite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hwsagent/remotewrite/config"
	"hwsagent/wal"
)

// The names that the dashboard and the alerts for remote write read, and what they
// show after a day's events.
func TestMetricsCompatible(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	u, err := config.ParseURL("https://u:secret@h.example/push?token=secret")
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMetrics(reg, "mimir", u.String())
	if err != nil {
		t.Fatal(err)
	}
	batch := Counts{classSample: 10, classHistogram: 2, classExemplar: 1}
	m.Sending(batch, 100, false)
	m.Sending(batch, 100, true)
	m.Sending(Counts{classMetadata: 7}, 50, false)
	m.Answered(Answer{Status: 200, Took: 30 * time.Millisecond})
	m.Answered(Answer{Err: errors.New("x"), Took: time.Second})
	m.Failed(Counts{classSample: 1})
	m.SetPending(6)
	m.Read(5_500)
	m.Read(4_000)
	m.Delivered(3_000)
	m.Waited()
	m.SetLimits(1, 50, 10000)
	m.SetShards(2, 4)
	m.SetMaxSamples(2000)
	m.SetState("held")
	m.SetSkew(-1500 * time.Millisecond)
	m.Held(3 * time.Second)
	m.Letters(2)
	var o wal.Outcome
	o.Filtered, o.Delivered = 3, 100
	o.Dropped[wal.TooOld], o.Dropped[wal.Rejected], o.Dropped[wal.Resent] = 4, 5, 9
	m.Settled(o)

	const compatible = `{remote_name="mimir",url="https://h.example/push"} `
	for line, want := range map[string]string{
		"samples_total": "20", "histograms_total": "4", "exemplars_total": "2", "metadata_total": "7",
		"samples_retried_total": "10", "histograms_retried_total": "2", "exemplars_retried_total": "1", "metadata_retried_total": "0",
		"samples_failed_total": "1", "histograms_failed_total": "0", "exemplars_failed_total": "0", "metadata_failed_total": "0",
		"samples_pending": "6",
		"bytes_total":     "200", "metadata_bytes_total": "50", "enqueue_retries_total": "1",
		"queue_highest_timestamp_seconds": "5.5", "queue_highest_sent_timestamp_seconds": "3",
		"shards": "2", "shards_desired": "4", "shards_min": "1", "shards_max": "50", "shard_capacity": "10000", "max_samples_per_send": "2000",
	} {
		name := "prometheus_remote_storage_" + line
		typ := "gauge"
		if strings.HasSuffix(line, "_total") {
			typ = "counter"
		}
		expect(t, reg, name, typ, name+compatible+want)
	}
	expect(t, reg, "prometheus_remote_storage_samples_dropped_total", "counter",
		`prometheus_remote_storage_samples_dropped_total{reason="dropped_series",remote_name="mimir",url="https://h.example/push"} 3`,
		`prometheus_remote_storage_samples_dropped_total{reason="too_old",remote_name="mimir",url="https://h.example/push"} 4`)
	expect(t, reg, "hwsagent_target_requests_total", "counter",
		`hwsagent_target_requests_total{code="200",target="mimir"} 1`, `hwsagent_target_requests_total{code="error",target="mimir"} 1`)
	expect(t, reg, "hwsagent_target_clock_skew_seconds", "gauge", `hwsagent_target_clock_skew_seconds{target="mimir"} -1.5`)
	expect(t, reg, "hwsagent_target_held_seconds_total", "counter", `hwsagent_target_held_seconds_total{target="mimir"} 3`)
	expect(t, reg, "hwsagent_target_dead_letters_total", "counter", `hwsagent_target_dead_letters_total{target="mimir"} 2`)
	expect(t, reg, "hwsagent_target_state", "gauge",
		`hwsagent_target_state{state="behind",target="mimir"} 0`, `hwsagent_target_state{state="held",target="mimir"} 1`,
		`hwsagent_target_state{state="ok",target="mimir"} 0`, `hwsagent_target_state{state="paused",target="mimir"} 0`, `hwsagent_target_state{state="retrying",target="mimir"} 0`,
		`hwsagent_target_state{state="starting",target="mimir"} 0`)
	if n := testutil.CollectAndCount(m.batchDuration); n != 1 {
		t.Errorf("%d batch durations", n)
	}
	m.Unregister()
	if all, err := reg.Gather(); err != nil || len(all) > 0 {
		t.Errorf("after Unregister: %v, %v", all, err)
	}
}

// expect compares one metric, its help text aside.
func expect(t *testing.T, reg prometheus.Gatherer, name, typ string, lines ...string) {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			text := "# HELP " + name + " " + f.GetHelp() + "\n# TYPE " + name + " " + typ + "\n" + strings.Join(lines, "\n") + "\n"
			if err := testutil.GatherAndCompare(reg, strings.NewReader(text), name); err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Errorf("no metric %s", name)
}

func TestMetricsTwice(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	first, err := NewMetrics(reg, "a", "u")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewMetrics(reg, "b", "u"); err != nil {
		t.Errorf("another name: %v", err)
	}
	if _, err := NewMetrics(reg, "a", "u"); err == nil {
		t.Error("the same name and URL twice")
	}
	first.Unregister()
	if _, err := NewMetrics(reg, "a", "u"); err != nil {
		t.Errorf("after Unregister: %v", err)
	}
}

func TestMetricsLint(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	if _, err := NewMetrics(reg, "a", "u"); err != nil {
		t.Fatal(err)
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// Nobody has to have metrics.
func TestMetricsNil(t *testing.T) {
	unregistered, err := NewMetrics(nil, "a", "u")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*Metrics{nil, unregistered} {
		m.Sending(Counts{1, 1, 1, 1}, 1, true)
		m.Answered(Answer{Status: 200})
		m.Failed(Counts{1})
		m.Settled(wal.Outcome{Filtered: 1})
		m.SetPending(1)
		m.Read(1)
		m.Delivered(1)
		m.Waited()
		m.SetLimits(1, 2, 3)
		m.SetShards(1, 1)
		m.SetMaxSamples(1)
		m.SetState("ok")
		m.SetSkew(1)
		m.Held(1)
		m.Letters(1)
		m.reloaded(nil)
		m.setExpiry("ca", time.Now())
		m.Unregister()
	}
	if n := testutil.ToFloat64(unregistered.total[classSample]); n != 1 {
		t.Errorf("unregistered metrics count %v", n)
	}
}

// The ends of certificates and the reloads of files show.
func TestMetricsCredentials(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue("client")
	dir := files(t, map[string]string{"ca.pem": ca.pem, "cert.pem": cert, "key.pem": key})
	m, err := NewMetrics(nil, "a", "u")
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, "{url: https://h.example/, tls_config: {ca_file: ca.pem, cert_file: cert.pem, key_file: key.pem}}", dir, ClientOptions{Metrics: m})
	if got := testutil.ToFloat64(m.expiry.WithLabelValues("client")); got != float64(time.Date(2098, 1, 1, 0, 0, 0, 0, time.UTC).Unix()) {
		t.Errorf("client certificate ends at %v", got)
	}
	if got := testutil.ToFloat64(m.expiry.WithLabelValues("ca")); got != float64(ca.cert.NotAfter.Unix()) {
		t.Errorf("authority ends at %v", got)
	}
	write(t, filepath.Join(dir, "key.pem"), "x")
	for range 3 { // one failure, seen three times
		if c.reload(true) == nil {
			t.Error("no error")
		}
	}
	write(t, filepath.Join(dir, "key.pem"), key)
	if err := c.reload(true); err != nil {
		t.Error(err)
	}
	cert, key = ca.issue("client")
	write(t, filepath.Join(dir, "cert.pem"), cert)
	write(t, filepath.Join(dir, "key.pem"), key)
	if err := c.reload(true); err != nil {
		t.Error(err)
	}
	if failed, ok := testutil.ToFloat64(m.reloads.WithLabelValues("failed")), testutil.ToFloat64(m.reloads.WithLabelValues("ok")); failed != 1 || ok != 1 {
		t.Errorf("%v reloads failed, %v did not; want 1 and 1", failed, ok)
	}
}

func TestCredentialFiles(t *testing.T) {
	c := mustLoad(t, `{url: http://h/, basic_auth: {username_file: u, password_file: p}, tls_config: {ca_file: ca, cert_file: /c, key_file: k}, http_headers: {B: {files: [b]}, A: {files: [a]}}}`)
	c.SetDirectory("/d")
	if got := strings.Join(c.CredentialFiles(), " "); got != "/d/ca /c /d/k /d/u /d/p /d/a /d/b" {
		t.Error(got)
	}
	if got := mustLoad(t, `{url: http://h/, bearer_token: x}`).CredentialFiles(); len(got) > 0 {
		t.Error(got)
	}
}

// The newest timestamps come back after the clock was a year ahead.
func TestHighestTimestampFollowsTheClockBack(t *testing.T) {
	g := maxGauge{gauge: prometheus.NewGauge(prometheus.GaugeOpts{Name: "highest"})}
	const now, year = 1_790_000_000_000, 365 * 86400_000
	for _, step := range []struct{ raise, want int64 }{
		{now, now}, {now - 60_000, now}, {now + year, now + year}, {now + year - 60_000, now + year},
		{now + 1000, now + 1000}, {now - 1000, now + 1000}, {now - 7_200_000, now - 7_200_000}, {now - 7_199_000, now - 7_199_000},
	} {
		g.raise(step.raise)
		if got := testutil.ToFloat64(g.gauge); got != float64(step.want)/1000 {
			t.Errorf("after %d: %v, want %d", step.raise, got, step.want)
		}
	}
}
