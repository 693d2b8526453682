package exposition

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"

	"hwsagent/internal/tools/tier"
)

// allowance is the time that a body may take: a second, and a second for each MiB. On a machine with
// nothing else to do most bodies take a hundredth of it.
func allowance(body []byte) time.Duration {
	return time.Second + time.Duration(len(body))*time.Second/(1<<20)
}

// readAll reads a body to its end.
func readAll(body []byte, s setup) (entries int, err error) {
	p, err := New(body, s.contentType, nil, s.options)
	if p == nil {
		return 0, err
	}
	all, err := read(p, s.starts)
	return len(all), err
}

// Each of these bodies makes Prometheus' parser take time with the square of its length: minutes to
// days for a few MiB.
func TestTimeIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, which the race detector makes ten times as slow")
	}
	const n = 100_000
	counters := func(last string) []byte {
		var b strings.Builder
		b.WriteString("# TYPE a counter\n")
		for i := range n {
			fmt.Fprintf(&b, "a_total{x=\"%d\"} 1\n", i)
		}
		return []byte(b.String() + last + "# EOF\n")
	}
	for _, tc := range []struct {
		name, contentType string
		body              []byte
		bound             bool // whether it is refused by a bound
	}{
		{"counters without start timestamps", typeOpen, counters(""), false},
		{"the word _created, and no start timestamp", typeOpen, counters("# HELP b _created\n"), false},
		{"one start timestamp, at the end", typeOpen, counters("a_created{x=\"0\"} 1\n"), false},
		{"one start timestamp, of no metric", typeOpen, counters("a_created{x=\"y\"} 1\n"), false},
		{"buckets in falling order", typeText, fallingBuckets(n), true},
		{"histograms with buckets in falling order", typeText, bytes.Repeat(fallingBuckets(maxConverted), 20), false},
		{"empty buckets of native histograms", typeProtobuf, bytes.Repeat(gappyBuckets(t, 2000), 300), false},
		{"very many empty buckets", typeProtobuf, bytes.Repeat(gappyBuckets(t, 200_000), 10), true},
		{"buckets of histograms with long labels", typeProtobuf, bytes.Repeat(family(t, "a", 1, 4000, strings.Repeat("y", 100_000)), 40), true},
		{"buckets of histograms in falling order", typeProtobuf, family(t, "a", 100, 1000, "x"), false},
		{"buckets of lines with long labels", typeOpen2, composites(100, 1000, 10_000), true},
		{"buckets of a line with long labels", typeOpen2, composites(1, 10_000, 100_000), true},
		{"buckets of lines", typeOpen2, composites(1000, 100, 100), false},
		{"long units", typeOpen2, []byte("# TYPE a gauge\n# UNIT a " + strings.Repeat("s", 100_000) + "\n" + strings.Repeat("a 1\n", n) + "# EOF\n"), true},
		{"long family names", typeProtobuf, bytes.Repeat(family(t, strings.Repeat("a", 500_000), 2000, 1, "x"), 2), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			refused := false
			for _, s := range setups() {
				if s.contentType != tc.contentType || s.options.IgnoreNativeHistograms || s.options.EnableTypeAndUnitLabels != s.options.KeepClassicOnClassicAndNativeHistograms {
					continue // less of the same
				}
				began := time.Now()
				entries, err := readAll(bytes.Clone(tc.body), s)
				if took := time.Since(began); took > tier.Within(10*allowance(tc.body)) {
					t.Errorf("%s: %d bytes took %s", s, len(tc.body), took)
				}
				if err != nil {
					refused = true
					if !tc.bound {
						t.Errorf("%s: %v after %d entries", s, err, entries)
					}
				}
			}
			if tc.bound != refused {
				t.Errorf("refused: %t, want %t", refused, tc.bound)
			}
		})
	}
}

// fallingBuckets is a classic histogram whose buckets come in falling order.
func fallingBuckets(n int) []byte {
	var b strings.Builder
	b.WriteString("# TYPE a histogram\n")
	for i := n; i > 0; i-- {
		fmt.Fprintf(&b, "a_bucket{le=\"%d\"} %d\n", i, i)
	}
	return []byte(b.String())
}

// gappyBuckets is a native histogram of which each second bucket is empty.
func gappyBuckets(t testing.TB, n int) []byte {
	name, count, length, offset, schema := "a", uint64(n/2), uint32(n), int32(0), int32(3)
	h := &dto.Histogram{SampleCount: &count, Schema: &schema, PositiveSpan: []*dto.BucketSpan{{Length: &length, Offset: &offset}}}
	for i := range n {
		h.PositiveDelta = append(h.PositiveDelta, []int64{1, -1}[i%2])
	}
	var b bytes.Buffer
	if _, err := protodelim.MarshalTo(&b, &dto.MetricFamily{Name: &name, Type: dto.MetricType_HISTOGRAM.Enum(), Metric: []*dto.Metric{{Histogram: h}}}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// composites are lines of OpenMetrics 2.0, each a histogram.
func composites(lines, buckets, labelBytes int) []byte {
	var b strings.Builder
	b.WriteString("# TYPE a histogram\n")
	for i := range lines {
		fmt.Fprintf(&b, "a{x=\"%d\",y=\"%s\"} {count:1,sum:1,bucket:[", i, strings.Repeat("y", labelBytes))
		for j := range buckets {
			fmt.Fprintf(&b, "%d:%d,", j, j)
		}
		fmt.Fprintf(&b, "+Inf:%d]}\n", buckets)
	}
	return []byte(b.String() + "# EOF\n")
}
