package translation

import (
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// TargetInfo is the metric with a resource's attributes.
const TargetInfo = "target_info"

// repeat is half of PromQL's lookback delta, so that target_info is found at each time between a resource's first and
// last point.
const repeat = 5 * time.Minute / 2

// longest bounds the time before a resource's newest point for which target_info is written. Prometheus' translation has no
// such bound, but its log is not shared with other inputs: one point of a clock that began in 1970 would be millions of
// samples.
const longest = time.Hour

// sample identifies a sample of target_info, which two resources may share.
type sample struct {
	series uint64 // hash of the labels
	t      int64  // milliseconds
}

// Info appends target_info of resources, for each series and time once. It belongs to one request.
type Info struct {
	sink Sink
	sent map[sample]struct{}
}

// NewInfo returns an Info that has appended nothing to sink.
func NewInfo(sink Sink) *Info { return &Info{sink: sink, sent: map[sample]struct{}{}} }

// InfoLabels returns the labels of target_info of a resource. They are empty if it has none: it needs attributes beside
// job and instance, and at least one of these.
func InfoLabels(s Settings, attributes pcommon.Map) labels.Labels {
	n := newNaming(s)
	n.setResource(attributes)
	return n.infoLabels(attributes)
}

func (n *naming) infoLabels(attributes pcommon.Map) labels.Labels {
	more := attributes.Len()
	for _, name := range []string{serviceName, serviceNamespace, serviceInstance} {
		if _, ok := attributes.Get(name); ok {
			more--
		}
	}
	if more == 0 {
		return labels.EmptyLabels()
	}
	ls := n.info(attributes)
	if !ls.Has(model.JobLabel) && !ls.Has(model.InstanceLabel) {
		return labels.EmptyLabels()
	}
	return ls
}

// Append appends target_info, with labels from [InfoLabels], for the time from a resource's first point to its last one,
// but for longest at most.
func (i *Info) Append(ls labels.Labels, first, newest pcommon.Timestamp) error {
	series, last := ls.Hash(), newest.AsTime()
	at := first.AsTime()
	if oldest := last.Add(-longest); at.Before(oldest) {
		at = oldest
	}
	for ; at.Before(last); at = at.Add(repeat) {
		if err := i.append(ls, sample{series, at.UnixMilli()}); err != nil {
			return err
		}
	}
	return i.append(ls, sample{series, last.UnixMilli()})
}

// append appends a sample of target_info unless it was appended before.
func (i *Info) append(ls labels.Labels, one sample) error {
	if _, ok := i.sent[one]; ok {
		return nil
	}
	i.sent[one] = struct{}{}
	_, err := i.sink.Append(0, ls, 0, one.t, 1, nil, nil, storage.AOptions{
		MetricFamilyName: TargetInfo, Metadata: metadata.Metadata{Type: model.MetricTypeGauge, Help: "Target metadata"},
	})
	return err
}
