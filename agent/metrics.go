package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the agent's own, beside those of its parts.
type metrics struct {
	reloadSuccessful prometheus.Gauge
	reloadTime       prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		reloadSuccessful: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hwsagent_config_last_reload_successful",
			Help: "Whether the last load of the configuration succeeded (1) or failed (0).",
		}),
		reloadTime: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hwsagent_config_last_reload_success_timestamp_seconds",
			Help: "When the configuration in force was loaded.",
		}),
	}
	b := Build()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "hwsagent_build_info",
		Help:        "Always 1; the labels identify the build.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go},
	})
	build.Set(1)
	reg.MustRegister(m.reloadSuccessful, m.reloadTime, build)
	return m
}

func (m *metrics) loaded(at time.Time) {
	m.reloadSuccessful.Set(1)
	m.reloadTime.Set(float64(at.UnixMilli()) / 1000)
}

func (m *metrics) reloadFailed() { m.reloadSuccessful.Set(0) }
