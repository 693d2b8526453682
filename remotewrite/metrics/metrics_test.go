package metrics

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hwsagent/remotewrite/client"
	"hwsagent/remotewrite/config"
	"hwsagent/wal/queue"
)

// The names that the dashboard and the alerts for remote write read, and what they
// show after a day's events.
func TestMetricsCompatible(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	u, err := config.ParseURL("https://u:secret@h.example/push?token=secret")
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(reg, "mimir", u.String())
	if err != nil {
		t.Fatal(err)
	}
	batch := Counts{Samples: 10, Histograms: 2, Exemplars: 1}
	m.Sending(batch, 100, false)
	m.Sending(batch, 100, true)
	m.Sending(Counts{Metadata: 7}, 50, false)
	m.Answered(client.Answer{Status: 200, Took: 30 * time.Millisecond})
	m.Answered(client.Answer{Err: errors.New("x"), Took: time.Second})
	m.Failed(Counts{Samples: 1})
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
	var o queue.Outcome
	o.Filtered, o.Delivered = 3, 100
	o.Dropped[queue.TooOld], o.Dropped[queue.Rejected], o.Dropped[queue.Unconfirmed] = 4, 5, 9
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
	first, err := New(reg, "a", "u")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(reg, "b", "u"); err != nil {
		t.Errorf("another name: %v", err)
	}
	if _, err := New(reg, "a", "u"); err == nil {
		t.Error("the same name and URL twice")
	}
	first.Unregister()
	if _, err := New(reg, "a", "u"); err != nil {
		t.Errorf("after Unregister: %v", err)
	}
}

func TestMetricsLint(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	if _, err := New(reg, "a", "u"); err != nil {
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

// Metrics without a registry count.
func TestMetricsUnregistered(t *testing.T) {
	m := Unregistered("a", "u")
	m.Sending(Counts{1, 1, 1, 1}, 1, true)
	m.Unregister()
	if n := testutil.ToFloat64(m.total[Samples]); n != 1 {
		t.Errorf("unregistered metrics count %v", n)
	}
}

// The ends of certificates and the reloads of files show.
func TestMetricsCredentials(t *testing.T) {
	m := Unregistered("a", "u")
	m.SetExpiry("server", time.Unix(1, 0))
	m.SetExpiries(map[string]time.Time{"client": time.Unix(2, 0), "ca": time.Unix(3, 0), "bearer": time.Unix(4, 0)})
	m.SetExpiries(map[string]time.Time{"client": time.Unix(5, 0)})
	for role, want := range map[string]float64{"server": 1, "client": 5} {
		if got := testutil.ToFloat64(m.expiry.WithLabelValues(role)); got != want {
			t.Errorf("%s ends at %v, want %v", role, got, want)
		}
	}
	if n, tokens := testutil.CollectAndCount(m.expiry), testutil.CollectAndCount(m.token); n != 2 || tokens != 0 {
		t.Errorf("%d certificates and %d tokens, want 2 and 0", n, tokens)
	}
	m.SetTokenEnd(time.Unix(6, 0))
	if got := testutil.ToFloat64(m.token); got != 6 {
		t.Errorf("the token ends at %v", got)
	}
	m.Reloaded(nil)
	m.Reloaded(errors.New("no"))
	if failed, ok := testutil.ToFloat64(m.reloads.WithLabelValues("failed")), testutil.ToFloat64(m.reloads.WithLabelValues("ok")); failed != 1 || ok != 1 {
		t.Errorf("%v reloads failed, %v did not; want 1 and 1", failed, ok)
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
