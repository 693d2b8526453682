package exposition

import (
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/util/convertnhcb"
)

// bucketBound sits between a text parser and the parser that converts its classic histograms, and
// bounds the buckets of each histogram.
type bucketBound struct {
	textparse.Parser

	kind    model.MetricType
	labels  labels.Labels // of the series of the current entry
	name    string        // of the histogram that the previous series belongs to
	hash    uint64        // of that histogram's labels
	buckets int           // of that histogram so far

	memory []byte
}

// Next implements [textparse.Parser].
func (b *bucketBound) Next() (textparse.Entry, error) {
	e, err := b.Parser.Next()
	if err != nil {
		return textparse.EntryInvalid, err
	}
	switch e {
	case textparse.EntrySeries:
		b.Parser.Labels(&b.labels)
		if err := b.count(); err != nil {
			return textparse.EntryInvalid, err
		}
		return e, nil
	case textparse.EntryHistogram:
		b.Parser.Labels(&b.labels)
	case textparse.EntryType:
		_, b.kind = b.Parser.Type()
	}
	b.buckets = 0 // the conversion uses up the previous entries
	return e, nil
}

// Labels implements [textparse.Parser].
func (b *bucketBound) Labels(l *labels.Labels) { *l = b.labels }

// count adds the current series to its histogram.
func (b *bucketBound) count() (err error) {
	if b.kind != model.MetricTypeHistogram {
		return nil
	}
	kind, name := convertnhcb.GetHistogramMetricBaseName(b.labels.Get(model.MetricNameLabel))
	var hash uint64
	hash, b.memory = b.labels.HashWithoutLabels(b.memory, model.BucketLabel)
	if name != b.name || hash != b.hash {
		b.name, b.hash, b.buckets = name, hash, 0
	}
	if kind != convertnhcb.SuffixBucket {
		return nil
	}
	if b.buckets++; b.buckets > maxConverted {
		return fmt.Errorf("%w: the histogram %s has more than %d buckets, too many for a conversion to a native one", ErrBound, cut(name), maxConverted)
	}
	return nil
}
