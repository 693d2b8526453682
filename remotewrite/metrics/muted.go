package metrics

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"

	"hwsagent/internal/meter"
)

// mute shows how many series are muted.
type mute struct {
	series  *prometheus.GaugeVec // by reason
	reasons map[string]int       // counts shown by series; used only by the caller of SetMuted
}

func (m *Target) addMuted(set *meter.Set) {
	m.sets = append(m.sets, set)
	m.mute.series = set.GaugeVec(meter.NotZero, "series_muted", "How many series are not sent because the receiver refuses them for this reason; their samples count as dropped, reason rejected. Absent while there are none.", "reason")
}

// SetMuted shows how many series are muted, by reason. Calls must not overlap.
func (m *Target) SetMuted(series map[string]int) {
	x := &m.mute
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
