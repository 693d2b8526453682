package agent

import (
	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/agent/clock"
	"hwsagent/internal/meter"
	"hwsagent/probes/self"
	rwmetrics "hwsagent/remotewrite/metrics"
	"hwsagent/wal"
)

// describedMetrics returns the agent's metrics that its own code makes. Those of the Go runtime and the process come
// from libraries.
func describedMetrics() (all []meter.Metric) {
	accounts := newAccounts(nil)
	for _, of := range [][]meter.Metric{
		newMetrics().set.Metrics(), clock.New(nil).Metrics.Metrics(), accounts.own.Metrics(), rwmetrics.Described(), wal.Metrics(),
		newIntakeMetrics(nil).own.Metrics(), accounts.prom.Metrics(), scrapeMetrics(),
	} {
		all = append(all, of...)
	}
	return all
}

// runtimeSent are the metrics of the Go runtime and the process that [self.Brief] sends.
var runtimeSent = []string{
	"go_goroutines", "go_memstats_alloc_bytes_total", "go_memstats_heap_inuse_bytes",
	"process_cpu_seconds_total", "process_max_fds", "process_open_fds", "process_resident_memory_bytes", "process_start_time_seconds",
}

// ownSeries returns the metrics of the registry that the self probe sends at that level.
func ownSeries(level self.Level, all prometheus.Gatherer) prometheus.Gatherer {
	if level == self.Full {
		return all
	}
	return meter.Brief(all, describedMetrics(), runtimeSent...)
}
