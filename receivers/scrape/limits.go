package scrape

import (
	"errors"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
)

var errBucketLimit = errors.New("histogram bucket limit exceeded")

// limits are the limits of one scrape.
type limits struct {
	samples int // 0 means no limit
	labels  labelLimits
	buckets int   // of a native histogram; 0 means no limit
	schema  int32 // finest resolution of a native histogram
}

func newLimits(cfg *settings) limits {
	return limits{
		samples: int(cfg.SampleLimit),                                                                            // #nosec G115 -- more samples than fit are no limit
		labels:  labelLimits{int(cfg.LabelLimit), int(cfg.LabelNameLengthLimit), int(cfg.LabelValueLengthLimit)}, // #nosec G115 -- likewise
		buckets: int(cfg.NativeHistogramBucketLimit),                                                             // #nosec G115 -- likewise
		schema:  schemaOf(cfg.NativeHistogramMinBucketFactor),
	}
}

// schemaOf returns the finest schema whose buckets grow at least by factor: those of schema n grow by
// 2^(2^-n).
func schemaOf(factor float64) int32 {
	if factor <= 1 {
		return histogram.ExponentialSchemaMax
	}
	n := math.Floor(-math.Log2(math.Log2(factor)))
	return int32(min(max(n, float64(histogram.ExponentialSchemaMin)), float64(histogram.ExponentialSchemaMax)))
}

// fit reduces the resolution of a histogram to the limits, in place.
func (lim limits) fit(v point) error {
	if v.h == nil && v.fh == nil {
		return nil
	}
	schema, buckets := sizeOf(v)
	if histogram.IsExponentialSchemaReserved(schema) && schema > lim.schema {
		if err := coarsen(v, lim.schema); err != nil {
			return err
		}
		schema, buckets = sizeOf(v)
	}
	for lim.buckets > 0 && buckets > lim.buckets {
		if !histogram.IsExponentialSchema(schema) || schema <= histogram.ExponentialSchemaMin {
			return errBucketLimit
		}
		if err := coarsen(v, schema-1); err != nil {
			return err
		}
		schema, buckets = sizeOf(v)
	}
	return nil
}

func sizeOf(v point) (schema int32, buckets int) {
	if v.h != nil {
		return v.h.Schema, len(v.h.PositiveBuckets) + len(v.h.NegativeBuckets)
	}
	return v.fh.Schema, len(v.fh.PositiveBuckets) + len(v.fh.NegativeBuckets)
}

func coarsen(v point, schema int32) error {
	if v.h != nil {
		return v.h.ReduceResolution(schema)
	}
	return v.fh.ReduceResolution(schema)
}
