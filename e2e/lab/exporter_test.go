//go:build linux && amd64

package lab

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// What Debian's node_exporter 1.5 says otherwise than the agent, which follows later versions. probes/host compares the same
// over node_exporter's own fixtures, and gives the reasons series by series.
var (
	// newer are families that 1.5 does not have.
	newer = regexp.MustCompile(`^node_(cpu_online|cpu_frequency_avg_hertz|nvme_namespace_.*|pressure_irq_.*|filesystem_mount_info|os_support_end_.*|watchdog_.*|` +
		`softnet_(cpu_collision_total|flow_limit_count_total|received_rps_total|backlog_len)|kernel_hung_.*)$`)
	// others are of the programs themselves.
	others = regexp.MustCompile(`^node_(scrape_collector_|exporter_build_info|textfile_scrape_error)`)
	// newerLabels are labels that 1.5 does not have, by family.
	newerLabels = map[string]string{"node_disk_info": "rotational", "node_network_info": "adminstate", "node_nvme_info": "cntlid"}
	// moving are gauges that change between any two looks: that the series are there, with these labels, is all that can be compared.
	moving = regexp.MustCompile(`^node_(procs_running|timex_(offset|frequency|maxerror|estimated_error|loop).*|memory_(Dirty|Writeback)_bytes|sockstat_.*|disk_io_now|entropy_available_bits|netstat_Tcp_CurrEstab)(\{|$)`)
	// backwards are counters that the kernel estimates anew each time.
	backwards = regexp.MustCompile(`^node_cpu_seconds_total\{.*mode="(idle|iowait)"`)
)

// identity is a series' name and labels as text, by which two sides are compared.
func identity(name string, labels map[string]string) string {
	var all []string
	for k, v := range labels {
		if v != "" && k != newerLabels[name] {
			all = append(all, fmt.Sprintf("%s=%q", k, v))
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return name
	}
	return name + "{" + strings.Join(all, ",") + "}"
}

// theirs is the output of node_exporter, with the start and end of the request by the machine's clock, in milliseconds.
type theirs struct {
	values   map[string]float64
	counters map[string]bool
	from, to int64
}

func (v *vm) exporter(t *testing.T) theirs {
	t.Helper()
	page := v.try("/bin/wget", "-qO-", "http://127.0.0.1:9100/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page.Stdout))
	if err != nil {
		t.Fatal(err)
	}
	said := theirs{values: map[string]float64{}, counters: map[string]bool{}, from: page.From, to: page.To + 1}
	for name, f := range families {
		if !strings.HasPrefix(name, "node_") || others.MatchString(name) {
			continue
		}
		for _, m := range f.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			key := identity(name, labels)
			said.values[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
			said.counters[key] = f.GetType() == dto.MetricType_COUNTER
		}
	}
	return said
}

// roundTakes is more than a round of the probe host takes, in milliseconds: its values are read that long after its time.
const roundTakes = 1500

// compareExporter compares the probe host with node_exporter several times, as values move: a value counts as equal if it was
// equal once while constant, or lay between the agent's readings before and after.
func compareExporter(t *testing.T, v *vm, r *record) {
	t.Helper()
	const looks = 6
	equal, differs := map[string]bool{}, map[string]string{}
	for range looks {
		said := v.exporter(t)
		eventually(t, time.Minute, func() string {
			if len(rounds(r.copy(), "host", said.to)) < 1 {
				return "there is no round of host after node_exporter's page"
			}
			return ""
		})
		ours := map[string]series{}
		for _, s := range r.copy() {
			if s.job == "host" && strings.HasPrefix(s.name, "node_") && !others.MatchString(s.name) && !newer.MatchString(s.name) {
				ours[identity(s.name, s.labels)] = s
			}
		}
		look(ours, said, equal, differs)
	}
	for _, key := range slices.Sorted(maps.Keys(differs)) {
		if !equal[key] {
			t.Error(differs[key])
		}
	}
	t.Logf("%d series equal node_exporter's", len(equal))
	if len(equal) < 400 {
		t.Errorf("only %d series equal node_exporter's: a part of the machine is missing", len(equal))
	}
}

// look compares once.
func look(ours map[string]series, said theirs, equal map[string]bool, differs map[string]string) {
	for key, v := range said.values {
		s, ok := ours[key]
		if !ok {
			differs[key] = fmt.Sprintf("only node_exporter has %s %v", key, v)
			continue
		}
		before, _ := s.around(said.from - roundTakes)
		_, after := s.around(said.to)
		if same(key, before.v, v, after.v, said.counters[key]) {
			equal[key] = true
		} else {
			differs[key] = fmt.Sprintf("%s is %v, then %v, of node_exporter in between %v", key, before.v, after.v, v)
		}
	}
	for key, s := range ours {
		if _, ok := said.values[key]; !ok && len(s.samples) > 0 && !s.samples[len(s.samples)-1].stale() {
			differs[key] = fmt.Sprintf("only the agent has %s %v", key, s.samples[len(s.samples)-1].v)
		}
	}
}

// same decides about one value between two of ours.
func same(key string, before, v, after float64, counter bool) bool {
	low, high := min(before, after), max(before, after)
	switch {
	case moving.MatchString(key):
		return before == before && after == after // not NaN
	case before == after:
		return v == before
	case counter:
		slack := 0.0
		if backwards.MatchString(key) {
			slack = 1
		}
		return v >= low-slack && v <= high+slack
	}
	slack := 0.02*max(high, -low) + (high - low)
	return v >= low-slack && v <= high+slack
}
