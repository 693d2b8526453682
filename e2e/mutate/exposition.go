package mutate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Sizes of the largest contents.
const (
	longLabel  = 17 << 20 // more than the 16 MiB - 1 that Prometheus' labels can hold
	manySeries = 60_000
)

// Exposition returns valid text of an exporter, or OpenMetrics 1.0 with start timestamps and exemplars.
func Exposition(rnd *rand.Rand, openMetrics bool) []byte {
	n := rnd.IntN(1000)
	if openMetrics {
		return openMetricsText(n, rnd.Uint64())
	}
	var b strings.Builder
	fmt.Fprint(&b, "# HELP mutant_up Whether it is well.\n# TYPE mutant_up gauge\n")
	for i := range 3 {
		fmt.Fprintf(&b, "mutant_up{path=\"/dev/%d\",text=\"a \\\"b\\\" \\\\ \\n c\"} %d\n", i, n)
	}
	fmt.Fprint(&b, "# TYPE mutant_size_bytes histogram\n")
	for i, le := range []string{"0.1", "1.0", "+Inf"} {
		fmt.Fprintf(&b, "mutant_size_bytes_bucket{le=%q} %d\n", le, n+i)
	}
	fmt.Fprintf(&b, "mutant_size_bytes_sum %d.5\nmutant_size_bytes_count %d\n", n, n+2)
	fmt.Fprintf(&b, "# TYPE mutant_requests_total counter\nmutant_requests_total{code=\"200\"} %d\nmutant_lag NaN\nmutant_far -Inf\n", n)
	return []byte(b.String())
}

func openMetricsText(n int, trace uint64) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# HELP mutant_up Whether it is well.\n# TYPE mutant_up gauge\nmutant_up{path=\"/dev/0\",text=\"a \\\"b\\\" \\\\ \\n c\"} %d\n", n)
	fmt.Fprintf(&b, "# TYPE mutant_requests counter\nmutant_requests_total{code=\"200\"} %d # {trace_id=\"%x\"} 1 1700000000.5\nmutant_requests_created{code=\"200\"} 1700000000.25\n", n, trace)
	fmt.Fprint(&b, "# TYPE mutant_size_bytes histogram\n# UNIT mutant_size_bytes bytes\n")
	for i, le := range []string{"0.1", "1.0", "+Inf"} {
		fmt.Fprintf(&b, "mutant_size_bytes_bucket{le=%q} %d # {trace_id=\"%x\"} 0.%d\n", le, n+i, trace, i)
	}
	fmt.Fprintf(&b, "mutant_size_bytes_sum %d.5\nmutant_size_bytes_count %d\nmutant_size_bytes_created 1700000000.25\n", n, n+2)
	fmt.Fprintf(&b, "# TYPE mutant_lag_seconds summary\n# UNIT mutant_lag_seconds seconds\nmutant_lag_seconds{quantile=\"0.5\"} 0.%d\nmutant_lag_seconds_count %d\nmutant_lag_seconds_created 1700000000\n# EOF\n", n, n)
	return []byte(b.String())
}

// Expositions returns the ways in which exposition text can be wrong.
func Expositions(openMetrics bool) []Content {
	valid := func(rnd *rand.Rand) []byte { return Exposition(rnd, openMetrics) }
	all := Bytes(valid)
	add := func(name string, f func(rnd *rand.Rand) Body) { all = append(all, Content{name, f}) }
	lines := func(name string, f func(rnd *rand.Rand, lines [][]byte) [][]byte) {
		add(name, func(rnd *rand.Rand) Body {
			return Of(bytes.Join(f(rnd, bytes.SplitAfter(valid(rnd), []byte("\n"))), nil))
		})
	}
	lines("lines in another order", func(rnd *rand.Rand, l [][]byte) [][]byte {
		rnd.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
		return l
	})
	lines("a line twice", func(rnd *rand.Rand, l [][]byte) [][]byte {
		i := rnd.IntN(len(l))
		return slices.Insert(l, rnd.IntN(len(l)), l[i])
	})
	lines("a line cut off", func(rnd *rand.Rand, l [][]byte) [][]byte {
		i := rnd.IntN(len(l))
		l[i] = slices.Concat(l[i][:rnd.IntN(len(l[i])+1)], []byte("\n"))
		return l
	})
	lines("a token replaced", func(rnd *rand.Rand, l [][]byte) [][]byte {
		i := rnd.IntN(len(l))
		tokens := bytes.Fields(l[i])
		if len(tokens) > 0 {
			tokens[rnd.IntN(len(tokens))] = []byte(token(rnd))
			l[i] = append(bytes.Join(tokens, []byte(" ")), '\n')
		}
		return l
	})
	lines("a comment that is none", func(rnd *rand.Rand, l [][]byte) [][]byte {
		line := pick(rnd, "# TYPE\n", "# TYPE mutant_up\n", "# TYPE mutant_up gauge counter\n", "# TYPE mutant_up nonsense\n", "# UNIT mutant_up\n", "# UNIT x_seconds metres\n", "# HELP\n", "#\n", "# \n", "#HELP x\n", "# EOF\n", "# HELP mutant_up \\\n", "# TYPE \"mutant up\" gauge\n", "# TYPE \"\n")
		return slices.Insert(l, rnd.IntN(len(l)), []byte(line))
	})
	for _, c := range largeTexts(openMetrics) {
		add(c.Name, c.Make)
	}
	if openMetrics {
		// A counter and then a sample with an endless exemplar: a reader that looks ahead for the start timestamp of
		// the first sample reaches the second.
		add("an exemplar that does not end, after a counter", func(rnd *rand.Rand) Body {
			exemplar := `{a="7",b="8"} 1 2` + "\n"
			return Text("# TYPE a counter\na_total 1\na_total 2 # " + pick(rnd, `{a=7`, `{a="7`, `{a`, `{`, `{a="7" b`, `{a="7",,`, exemplar[:rnd.IntN(len(exemplar))]) + "\n# EOF\n")
		})
		lines("start timestamps in wrong places", func(rnd *rand.Rand, l [][]byte) [][]byte {
			line := pick(rnd, "mutant_requests_created 1\n", "mutant_requests_created{code=\"200\"} NaN\n", "mutant_size_bytes_created 1e300\n", "mutant_up_created 1 2 3\n", "mutant_size_bytes_created{a=\n", "_created 1\n", "mutant_requests_created{code=\"200\"} 1 # {a=\"b\"} 1\n")
			return slices.Insert(l, rnd.IntN(len(l)), []byte(line))
		})
		add("no end", func(rnd *rand.Rand) Body {
			return Of(bytes.TrimSuffix(valid(rnd), []byte("# EOF\n")))
		})
		add("more after the end", func(rnd *rand.Rand) Body { return Of(slices.Concat(valid(rnd), valid(rnd))) })
	}
	return all
}

func token(rnd *rand.Rand) string {
	return pick(rnd, "", "NaN", "-NaN", "+Inf", "1e999", "-1e999", "0x1p-1074", "1_000", "9223372036854775807", "-9223372036854775808", "99999999999999999999999999",
		"1e-400", "{", "}", "{}", `{a="b"}`, `{a="b",a="c"}`, `{__name__="x"}`, `{"utf 8"}`, `{"utf 8","a b"="c"}`, `{le="x"}`, `{quantile="2"}`, `{a="\x"}`, `{a="\`, "\x00", "\xff\xfe",
		"#", "# {", `# {a="b"}`, "# EOF", "TYPE", "counter", "stateset", "info", "gaugehistogram", "unknown", "_total", strings.Repeat("9", 400), strings.Repeat("{", 2000))
}

// largeTexts returns texts that are large, or expand to much.
func largeTexts(openMetrics bool) []Content {
	end := ""
	if openMetrics {
		end = "# EOF\n"
	}
	return []Content{
		{"a label of 17 MB", func(*rand.Rand) Body {
			return Body{{Bytes: []byte(`mutant_long{x="`)}, {bytes.Repeat([]byte("y"), 64<<10), longLabel >> 16}, {Bytes: []byte("\"} 1\n" + end)}}
		}},
		{"a label of some kilobytes", func(rnd *rand.Rand) Body {
			return Body{{Bytes: []byte(`mutant_long{x="`)}, {bytes.Repeat([]byte("y"), 1<<10), 1 + rnd.IntN(500)}, {Bytes: []byte("\"} 1\n" + end)}}
		}},
		{"thousands of labels", func(rnd *rand.Rand) Body {
			var b strings.Builder
			for i := range 1000 + rnd.IntN(4000) {
				fmt.Fprintf(&b, `l%d="v",`, i)
			}
			return Text("mutant_labels{" + b.String() + "} 1\n" + end)
		}},
		{"tens of thousands of series", func(rnd *rand.Rand) Body {
			var b strings.Builder
			for i := range manySeries/2 + rnd.IntN(manySeries/2) {
				fmt.Fprintf(&b, "mutant_many{n=\"%d\"} 1\n", i)
			}
			return Text(b.String() + end)
		}},
		{"a comment of a megabyte", func(rnd *rand.Rand) Body {
			return Body{{Bytes: []byte("# HELP mutant_up ")}, {bytes.Repeat([]byte("h"), 1<<10), 1 << 10}, {Bytes: []byte(pick(rnd, "\n", "", "\\", "\x00\n") + end)}}
		}},
		{"a million empty lines", func(*rand.Rand) Body {
			return Body{{bytes.Repeat([]byte("\n"), 1<<10), 1 << 10}, {Bytes: []byte("mutant_up 1\n" + end)}}
		}},
		{"an exemplar of some kilobytes", func(rnd *rand.Rand) Body {
			return Text("# TYPE mutant_e counter\nmutant_e_total 1 # {t=\"" + strings.Repeat("e", 1<<rnd.IntN(18)) + "\"} 1\n" + end)
		}},
	}
}

// Families returns a correct answer in protobuf: messages of io.prometheus.client.MetricFamily, each preceded by its
// length.
func Families(rnd *rand.Rand) []byte {
	value, trace := float64(rnd.IntN(1000)), fmt.Sprint(rnd.Uint64())
	pair := func(name, value string) []*dto.LabelPair { return []*dto.LabelPair{{Name: &name, Value: &value}} }
	created, bound, count := timestamppb.New(time.Unix(1700000000, 0)), 1.5, uint64(7)
	schema, threshold, zeros, offset, length := int32(3), 1e-9, uint64(1), int32(-4), uint32(2)
	var out bytes.Buffer
	for _, f := range []*dto.MetricFamily{
		{Name: proto.String("mutant_up"), Help: proto.String("Whether it is well."), Type: dto.MetricType_GAUGE.Enum(), Metric: []*dto.Metric{{Label: pair("path", "/dev/0"), Gauge: &dto.Gauge{Value: &value}}}},
		{Name: proto.String("mutant_requests_total"), Type: dto.MetricType_COUNTER.Enum(), Metric: []*dto.Metric{{Label: pair("code", "200"), Counter: &dto.Counter{
			Value: &value, CreatedTimestamp: created, Exemplar: &dto.Exemplar{Label: pair("trace_id", trace), Value: &value, Timestamp: created},
		}}}},
		{Name: proto.String("mutant_size_bytes"), Type: dto.MetricType_HISTOGRAM.Enum(), Metric: []*dto.Metric{{Histogram: &dto.Histogram{
			SampleCount: &count, SampleSum: &value, CreatedTimestamp: created, Bucket: []*dto.Bucket{{CumulativeCount: &count, UpperBound: &bound}},
			Schema: &schema, ZeroThreshold: &threshold, ZeroCount: &zeros, PositiveSpan: []*dto.BucketSpan{{Offset: &offset, Length: &length}}, PositiveDelta: []int64{2, 2},
		}}}},
		{Name: proto.String("mutant_lag"), Type: dto.MetricType_SUMMARY.Enum(), Metric: []*dto.Metric{{Summary: &dto.Summary{SampleCount: &count, SampleSum: &value, Quantile: []*dto.Quantile{{Quantile: proto.Float64(0.5), Value: &value}}}}}},
	} {
		if _, err := protodelim.MarshalTo(&out, f); err != nil {
			panic(err) // cannot fail for a message made above
		}
	}
	return out.Bytes()
}

// AllFamilies returns the ways in which an answer in protobuf can be wrong.
func AllFamilies() []Content {
	all := Bytes(Families)
	for _, c := range trees(protobuf{}, func(rnd *rand.Rand) []byte {
		b := Families(rnd)
		length, n := binary.Uvarint(b)
		return b[n : n+int(length)] // the first of them, without its length
	}) {
		all = append(all, Content{c.Name, func(rnd *rand.Rand) Body {
			one := c.Make(rnd).Bytes()
			return Of(slices.Concat(binary.AppendUvarint(nil, uint64(len(one))), one, Families(rnd)))
		}})
	}
	return append(all, Content{"a length of a message that is wrong", func(rnd *rand.Rand) Body {
		return Of(slices.Concat(protobuf{}.extremeLength(rnd), Families(rnd)))
	}}, Content{"a label of 17 MB", func(*rand.Rand) Body {
		// {1: "m", 3: 1, 4: {1: {1: "x", 2: long}}}, with the lengths of what is around it
		const long = longLabel
		value := binary.AppendUvarint([]byte{0x12}, long)
		pair := slices.Concat([]byte{0x0a, 1, 'x'}, value)
		label := slices.Concat(binary.AppendUvarint([]byte{0x0a}, uint64(len(pair)+long)), pair)
		metric := slices.Concat(binary.AppendUvarint([]byte{0x22}, uint64(len(label)+long)), label)
		family := slices.Concat([]byte{0x0a, 1, 'm', 0x18, 1}, metric)
		return Body{{Bytes: slices.Concat(binary.AppendUvarint(nil, uint64(len(family)+long)), family)}, {bytes.Repeat([]byte("y"), 64<<10), long >> 16}}
	}})
}
