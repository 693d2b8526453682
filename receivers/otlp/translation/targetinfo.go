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

// told identifies a sample of target_info, which two resources may share.
type told struct {
	series uint64 // hash of the labels
	t      int64  // milliseconds
}

// targetInfo appends target_info for the time of a resource's points, but for longest at most, if it has attributes beside
// job and instance, and at least one of these.
func (t *translator) targetInfo(attributes pcommon.Map, of period) error {
	more := attributes.Len()
	for _, name := range []string{serviceName, serviceNamespace, serviceInstance} {
		if _, ok := attributes.Get(name); ok {
			more--
		}
	}
	if more == 0 {
		return nil
	}
	ls := t.naming.info(attributes)
	if !ls.Has(model.JobLabel) && !ls.Has(model.InstanceLabel) {
		return nil
	}
	series, last := ls.Hash(), of.last.AsTime()
	at := of.first.AsTime()
	if oldest := last.Add(-longest); at.Before(oldest) {
		at = oldest
	}
	for ; at.Before(last); at = at.Add(repeat) {
		if err := t.tell(ls, told{series, at.UnixMilli()}); err != nil {
			return err
		}
	}
	return t.tell(ls, told{series, last.UnixMilli()})
}

// tell appends a sample of target_info unless it was appended before.
func (t *translator) tell(ls labels.Labels, one told) error {
	if _, ok := t.told[one]; ok {
		return nil
	}
	t.told[one] = struct{}{}
	_, err := t.sink.Append(0, ls, 0, one.t, 1, nil, nil, storage.AOptions{
		MetricFamilyName: TargetInfo, Metadata: metadata.Metadata{Type: model.MetricTypeGauge, Help: "Target metadata"},
	})
	return err
}
