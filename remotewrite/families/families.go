// Package families sends metric metadata to a target as remote write 1.0 does: in requests of their own, every send_interval. It is not
// accounted for, since the next round sends everything again. Remote write 2.0 sends metadata with the samples.
package families

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"

	"hwsagent/wal"
)

// most bounds the metric families whose metadata is sent to a target, so that a
// runaway probe cannot fill memory and network with help texts.
const most = 20000

// Of lists the metadata of the metric families of series, sorted by
// name, at most 20,000. Names are those that the appender gave, as in
// Prometheus: rules that rename metrics do not rename families. If the series of a
// family differ, the first one with metadata counts.
func Of(series iter.Seq[*wal.Series]) []prompb.MetricMetadata {
	all := map[string]prompb.MetricMetadata{}
	var about *wal.About // of the series before, as is name
	name := ""
	for s := range series {
		if len(all) == most {
			break
		}
		if s.About == nil {
			continue
		}
		family := s.About.Family
		if family == "" {
			family = s.Labels.Get(model.MetricNameLabel)
		}
		if s.About == about && family == name {
			continue // most series follow another one of their family, and a comparison is quicker than a map
		}
		about, name = s.About, family
		m := &about.Meta
		if m.Type == "" && m.Help == "" && m.Unit == "" {
			continue
		}
		if _, known := all[name]; known || name == "" {
			continue
		}
		all[name] = prompb.MetricMetadata{
			MetricFamilyName: model.EscapeName(name, model.UnderscoreEscaping), // legal for remote write 1.0
			Type:             prompb.FromMetadataType(m.Type),
			Help:             strings.ToValidUTF8(m.Help, "\uFFFD"),
			Unit:             strings.ToValidUTF8(m.Unit, "\uFFFD"),
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b prompb.MetricMetadata) int {
		return strings.Compare(a.MetricFamilyName, b.MetricFamilyName)
	})
}
