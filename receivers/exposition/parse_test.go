package exposition

import (
	"bytes"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// FuzzParse: whatever the format, a sample has labels in order and one kind of value, and a body
// that is not read to its end says so.
func FuzzParse(f *testing.F) {
	kinds := []string{Text, OpenMetrics, Protobuf}
	f.Add(byte(0), []byte("# HELP a b\n# TYPE a histogram\na_bucket{le=\"1\",c=\"d\"} 1 5\na_sum 2\n{\"x.y\"} NaN\n"))
	f.Add(byte(1), []byte("# TYPE c counter\n# UNIT c s\nc_total 7 6.5 # {trace=\"t\"} 1 2\nc_created 1\n# EOF\n"))
	f.Add(byte(2), []byte("\x10\n\x01a\x18\x01\"\x09\x12\x07\x09\x00\x00\x00\x00\x00\x00"))
	f.Add(byte(2), native(f))
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		if CheckLines(body) != nil {
			return
		}
		_ = Parse(body, kinds[int(which)%len(kinds)], func(s *Sample) error {
			if s.H != nil && s.FH != nil || (s.H != nil || s.FH != nil) && s.V != 0 || !s.Timed && s.T != 0 {
				t.Errorf("%+v", s)
			}
			last := ""
			s.Labels.Range(func(l labels.Label) {
				if l.Name < last {
					t.Errorf("%s is not in order", s.Labels)
				}
				last = l.Name
			})
			return nil
		})
	})
}

// native is a family with a native histogram and an exemplar, delimited.
func native(f *testing.F) []byte {
	name, sum, schema, width, one, label := "h", 3.5, int32(3), 0.001, uint64(1), "trace"
	delta, span, length := int64(1), int32(2), uint32(1)
	var b bytes.Buffer
	_, err := protodelim.MarshalTo(&b, &dto.MetricFamily{Name: &name, Type: dto.MetricType_HISTOGRAM.Enum(), Metric: []*dto.Metric{{Histogram: &dto.Histogram{
		SampleCount: &one, SampleSum: &sum, Schema: &schema, ZeroThreshold: &width, CreatedTimestamp: timestamppb.New(time.Unix(1, 0)),
		PositiveSpan: []*dto.BucketSpan{{Offset: &span, Length: &length}}, PositiveDelta: []int64{delta},
		Bucket:    []*dto.Bucket{{CumulativeCount: &one, UpperBound: &sum, Exemplar: &dto.Exemplar{Label: []*dto.LabelPair{{Name: &label, Value: &name}}, Value: &sum}}},
		Exemplars: []*dto.Exemplar{{Label: []*dto.LabelPair{{Name: &label, Value: &name}}, Value: &sum, Timestamp: timestamppb.New(time.Unix(2, 0))}},
	}}}})
	if err != nil {
		f.Fatal(err)
	}
	return b.Bytes()
}
