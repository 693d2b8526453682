package exposition

import (
	"bytes"
	"fmt"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"
)

// family is a delimited family with that many classic histograms, whose first label has that value.
func family(t testing.TB, name string, metrics, buckets int, value string) []byte {
	t.Helper()
	f := &dto.MetricFamily{Name: &name, Type: dto.MetricType_HISTOGRAM.Enum()}
	x, y := "x", "y"
	for i := range metrics {
		number, count := fmt.Sprint(i), uint64(buckets)
		h := &dto.Histogram{SampleCount: &count}
		for b := range buckets {
			upper, n := float64(b), uint64(b+1)
			h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &upper, CumulativeCount: &n})
		}
		f.Metric = append(f.Metric, &dto.Metric{Histogram: h, Label: []*dto.LabelPair{{Name: &x, Value: &value}, {Name: &y, Value: &number}}})
	}
	var b bytes.Buffer
	if _, err := protodelim.MarshalTo(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
