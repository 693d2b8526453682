package wire

import (
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
)

// Series describes one series in a request, without its samples. Texts and metadata behind it must not
// change.
type Series struct {
	// Labels are the labels in the log: names ascend, and no name or value is empty. The slice may change when another series
	// begins.
	Labels []labels.Label

	// Form is how the target writes these labels. It must come from [Forms.Of] for them.
	Form *Form

	// Meta is the metadata of the series' metric family; nil if unknown. 1.0 cannot carry it.
	Meta *metadata.Metadata
}
