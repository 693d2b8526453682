package wire

import (
	"fmt"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/prompb"
)

// Series describes one series in a request, without its samples. The memory behind it must not
// change.
type Series struct {
	// Labels are the labels in the log: names ascend, and no name or value is empty.
	Labels labels.Labels

	// Form is how the target writes these labels. It must come from [Forms.Of] for them.
	Form *Form

	// Meta is the metadata of the series' metric family; nil if unknown. 1.0 cannot carry it.
	Meta *metadata.Metadata
}

// EncodeLabels returns labels as the label part of a prompb TimeSeries, including keys.
func EncodeLabels(ls labels.Labels) []byte { return appendLabels(nil, keySeriesLabel, ls) }

// DecodeLabels is the inverse of [EncodeLabels].
func DecodeLabels(encoded []byte) (labels.Labels, error) {
	var ts prompb.TimeSeries
	if err := ts.Unmarshal(encoded); err != nil {
		return labels.EmptyLabels(), fmt.Errorf("decode labels: %w", err)
	}
	b := labels.NewScratchBuilder(len(ts.Labels))
	return ts.ToLabels(&b, nil), nil
}
