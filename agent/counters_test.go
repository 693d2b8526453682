package agent

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// TestCountersNeverFall: no counter of /metrics goes backwards over reloads that change targets and probes, remove them
// and bring them back; after a restart those of targets begin at 0, and the account goes on.
func TestCountersNeverFall(t *testing.T) {
	sink := newSink(t)
	r := &running{t: t, file: filepath.Join(t.TempDir(), "agent.yaml"), done: make(chan error, 1)}
	storage := t.TempDir()
	seen := map[string]float64{}
	look := func(when string) {
		t.Helper()
		families, err := r.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				value := m.GetCounter().GetValue()
				if f.GetType() == dto.MetricType_HISTOGRAM {
					value = float64(m.GetHistogram().GetSampleCount())
				} else if f.GetType() != dto.MetricType_COUNTER {
					continue
				}
				series := f.GetName() + fmt.Sprint(m.GetLabel())
				if value < seen[series] {
					t.Errorf("%s: %s was %v and is %v", when, series, seen[series], value)
				}
				seen[series] = value
			}
		}
	}
	arrives := func() {
		t.Helper()
		from := sink.last()
		until(t, "more has arrived", func() bool { return sink.last() > from+3 })
	}
	a, b := entry("a", sink.URL, ""), entry("b", "http://127.0.0.1:1/", "")
	changed := entry("a", sink.URL, ", remote_timeout: 7s")
	r.configure(a, b)
	startAgentWith(t, r, storage, "")
	arrives()
	look("at first")
	for i, entries := range [][]string{{changed, b}, {changed}, {a, b}, {b}, {b, a}} {
		r.configure(entries...)
		if err := r.Reload(); err != nil {
			t.Fatal(err)
		}
		look(fmt.Sprintf("just after reload %d", i))
		if strings.Contains(strings.Join(entries, ""), "name: a") {
			arrives()
		}
		look(fmt.Sprintf("after reload %d", i))
	}
	account, ok := r.target("a")
	if !ok || account.Ledger.Delivered == 0 {
		t.Fatalf("target a: %+v", account)
	}
	r.end()
	seen = map[string]float64{}
	sink.Close() // nothing is delivered any more
	r.done = make(chan error, 1)
	startAgentWith(t, r, storage, "")
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"delivered_samples_total", "filtered_samples_total", "dropped_samples_total", "requests_total"} {
		for _, m := range metricsOf(families, "hwsagent_target_"+name, "a") {
			if m.GetCounter().GetValue() > 2 { // a request may have failed
				t.Errorf("%s starts at %v", name, m.GetCounter().GetValue())
			}
		}
	}
	delivered := 0.0
	for _, m := range metricsOf(families, "hwsagent_target_account_samples", "a") {
		if strings.Contains(fmt.Sprint(m.GetLabel()), `"delivered"`) {
			delivered = m.GetGauge().GetValue()
		}
	}
	if delivered < float64(account.Ledger.Delivered) {
		t.Errorf("the account has %v delivered samples, %d before the restart", delivered, account.Ledger.Delivered)
	}
}
