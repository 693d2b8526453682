package metrics

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/internal/meter"
)

// quarantine shows how many series are in quarantine.
type quarantine struct {
	series  *prometheus.GaugeVec // by reason
	reasons map[string]int       // counts shown by series; used only by the caller of SetQuarantined
}

func (m *Target) addQuarantine(set *meter.Set) {
	m.sets = append(m.sets, set)
	m.quarantine.series = set.GaugeVec(meter.NotZero, "series_quarantined", "How many series are not sent because the receiver refuses them for this reason; their samples count as dropped, reason rejected. Absent while there are none.", "reason")
}

// SetQuarantined shows how many series are in quarantine, by reason. Calls must not overlap.
func (m *Target) SetQuarantined(series map[string]int) {
	x := &m.quarantine
	for r := range x.reasons {
		if series[r] == 0 {
			x.series.DeleteLabelValues(r)
		}
	}
	for r, n := range series {
		x.series.WithLabelValues(r).Set(float64(n))
	}
	x.reasons = maps.Clone(series)
}
