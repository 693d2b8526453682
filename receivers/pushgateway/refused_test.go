package pushgateway

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/golang/snappy"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"

	"hwsagent/internal/exposition"
)

// own returns what a group shows besides what is pushed; labels are such as job="j".
func own(labels, pushed, failed string) []string {
	return []string{
		fmt.Sprintf("{__name__=%q, %s} %s", failureTime, labels, failed),
		fmt.Sprintf("{__name__=%q, %s} %s", pushTime, labels, pushed),
	}
}

// A push that is read and refused leaves its time with the group, which it makes if need be, over
// a restart, too. One that cannot be read leaves nothing, with a group and without one.
func TestTimeOfRefusedPushes(t *testing.T) {
	kinds := func(name string, kind dto.MetricType, m *dto.Metric) string {
		var b bytes.Buffer
		if _, err := protodelim.MarshalTo(&b, &dto.MetricFamily{Name: &name, Type: &kind, Metric: []*dto.Metric{m}}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	one := 1.0
	quantile, value := "quantile", "1"
	for name, tc := range map[string]struct {
		contentType, body string
		status            int
		noted             bool
	}{
		"a timestamp":                {"", "x 1 1700000000000\n", 400, true},
		"a reserved label":           {"", "x{__foo=\"a\"} 1\n", 400, true},
		"a label twice":              {"", "x{a=\"1\",a=\"2\"} 2\n", 400, false}, // the parser refuses it
		"a series twice":             {"", "x 1\nx 1\n", 400, true},
		"the name push_time_seconds": {"", "push_time_seconds 1\n", 400, true},
		"a long label":               {"", "x{a=\"" + strings.Repeat("x", 5000) + "\"} 2\n", 400, true},
		"another type":               {"", "# TYPE taken gauge\ntaken 1\n", 400, true},
		"a gauge that is a counter":  {exposition.Protobuf, kinds("x", dto.MetricType_GAUGE, &dto.Metric{Counter: &dto.Counter{Value: &one}}), 400, true},
		"a family without values":    {exposition.Protobuf, kinds("x", dto.MetricType_COUNTER, &dto.Metric{}), 400, true},
		"an unknown type":            {exposition.Protobuf, kinds("x", 77, &dto.Metric{Counter: &dto.Counter{Value: &one}}), 400, true},
		"a summary's label quantile": {exposition.Protobuf, kinds("x", dto.MetricType_SUMMARY, &dto.Metric{
			Summary: &dto.Summary{SampleSum: &one}, Label: []*dto.LabelPair{{Name: &quantile, Value: &value}},
		}), 400, true},
		"no exposition":    {"", "x{ 2", 400, false},
		"cut protobuf":     {exposition.Protobuf, "\x10abc", 400, false},
		"not delimited":    {"application/vnd.google.protobuf; encoding=text", "", 415, false},
		"too many samples": {"", strings.Repeat("x 1\n", 500_000), 413, false},
	} {
		for _, there := range []bool{false, true} {
			dir := t.TempDir()
			r := newRig(t, dir)
			r.must(200, "PUT", "/metrics/job/other", "# TYPE taken counter\ntaken 1\n")
			want := append(own(`job="other"`, "set", "0"), `{__name__="taken", job="other"} 1`)
			if there {
				r.must(200, "PUT", "/metrics/job/j", "")
			}
			if w := r.do("PUT", "/metrics/job/j", tc.contentType, tc.body); w.Code != tc.status {
				t.Errorf("%s: %d %.300s, want %d", name, w.Code, w.Body, tc.status)
			}
			switch {
			case there && tc.noted:
				want = append(own(`job="j"`, "set", "set"), want...)
			case there:
				want = append(own(`job="j"`, "set", "0"), want...)
			case tc.noted:
				want = append(own(`job="j"`, "0", "set"), want...)
			}
			what := fmt.Sprintf("%s, there is a group: %t", name, there)
			r.want(what, sorted(want)...)
			r = newRig(t, dir)
			r.want(what+", after a restart", sorted(want)...)
			r.must(200, "POST", "/metrics/job/j", "y 1\n") // it may be pushed to
			r.must(202, "DELETE", "/metrics/job/j", "")
			r.want("deleted", sorted(append(own(`job="other"`, "set", "0"), `{__name__="taken", job="other"} 1`))...)
		}
	}
}

// Refused pushes under ever new names make a bounded number of groups, and take no place of a
// push that is good.
func TestManyRefusedGroups(t *testing.T) {
	r := newRig(t, t.TempDir())
	for i := range maxUnpushed + 10 {
		r.must(400, "PUT", fmt.Sprint("/metrics/job/", i), "x 1 1\n")
	}
	if n := len(r.store.all()); n != maxUnpushed || r.store.unpushed != n {
		t.Errorf("%d groups, %d counted, want %d", n, r.store.unpushed, maxUnpushed)
	}
	r.must(200, "PUT", "/metrics/job/good", "x 1\n")
	r.must(200, "PUT", "/metrics/job/0", "x 1\n")
	r.must(202, "DELETE", "/metrics/job/1", "")
	if r.store.unpushed != maxUnpushed-2 {
		t.Errorf("%d are counted", r.store.unpushed)
	}
	if again := newRig(t, r.dir).store; again.unpushed != maxUnpushed-2 {
		t.Errorf("%d are counted after a restart", again.unpushed)
	}
	r.must(400, "PUT", "/metrics/job/long/l/"+strings.Repeat("x", 5000), "x 1\n") // no series may have such a label
	if n := len(r.store.all()); n != maxUnpushed {
		t.Errorf("%d groups, want %d", n, maxUnpushed)
	}
}

// One family name has one type in all groups, and no name of a part of a histogram or a summary:
// every pair of types in two groups and in one, one push after the other, in both orders.
func TestTypesAcrossGroups(t *testing.T) {
	texts := map[string]string{
		"counter":   "# TYPE %s counter\n%[1]s{l=%q} 1\n",
		"gauge":     "# TYPE %s gauge\n%[1]s{l=%q} 1\n",
		"untyped":   "%s{l=%q} 1\n",
		"summary":   "# TYPE %s summary\n%[1]s_sum{l=%q} 1\n%[1]s_count{l=%[2]q} 1\n",
		"histogram": "# TYPE %s histogram\n%[1]s_bucket{l=%q,le=\"+Inf\"} 1\n%[1]s_sum{l=%[2]q} 1\n%[1]s_count{l=%[2]q} 1\n",
	}
	parts := map[string][]string{"summary": {"_sum", "_count"}, "histogram": {"_sum", "_count", "_bucket"}}
	isPart := func(kind, suffix string) bool { return strings.Contains(strings.Join(parts[kind], " "), suffix) }
	for first := range texts {
		for second := range texts {
			for _, suffix := range []string{"", "_sum", "_count", "_bucket", "_total"} {
				for _, swapped := range []bool{false, true} {
					for _, group := range []string{"/metrics/job/a", "/metrics/job/b"} {
						names := [2]string{"x", "x" + suffix}
						whole := first
						if swapped {
							names = [2]string{"x" + suffix, "x"}
							whole = second
						}
						r := newRig(t, t.TempDir())
						r.must(200, "POST", "/metrics/job/a", fmt.Sprintf(texts[first], names[0], "1"))
						r = newRig(t, r.dir) // types are known after a restart, too
						status := 200
						if suffix != "" && isPart(whole, suffix) || suffix == "" && first != second && group == "/metrics/job/b" {
							status = 400
						}
						if w := r.do("POST", group, "", fmt.Sprintf(texts[second], names[1], "2")); w.Code != status {
							t.Errorf("%s %s, then %s %s to %s: %d %s, want %d", first, names[0], second, names[1], group, w.Code, w.Body, status)
						}
						if status == 200 {
							continue
						}
						r.must(202, "DELETE", "/metrics/job/a", "")
						r.must(200, "PUT", "/metrics/job/b", fmt.Sprintf(texts[second], names[1], "2"))
					}
				}
			}
		}
	}
}

// Groups that an earlier version took with different types of one name stay as they are, and can
// be pushed to.
func TestTypesFromBefore(t *testing.T) {
	r := newRig(t, t.TempDir())
	r.must(200, "PUT", "/metrics/job/a", "# TYPE x counter\nx 1\n")
	old := r.store.all()[0]
	other := map[string]string{"job": "b"}
	kept := newKeeper(other, func(int64) error { return nil })
	if err := errors.Join(kept.keep(gauge("x", 2)), kept.refused); err != nil {
		t.Fatal(err)
	}
	g := &group{labels: other, families: kept.out, pushed: old.pushed}
	if err := r.store.save(r.store.file(key(other)), g); err != nil {
		t.Fatal(err)
	}
	r = newRig(t, r.dir)
	r.must(200, "PUT", "/metrics/job/a", "# TYPE x counter\nx 3\n")
	r.must(200, "POST", "/metrics/job/b", "# TYPE x gauge\nx 4\n")
	r.must(400, "POST", "/metrics/job/b", "# TYPE x untyped\nx 4\n")
	r.must(400, "POST", "/metrics/job/c", "# TYPE x gauge\nx 4\n")
	r.want("in the end", sorted(append(append(append(own(`job="a"`, "set", "0"), own(`job="b"`, "set", "set")...), own(`job="c"`, "0", "set")...),
		`{__name__="x", job="a"} 3`, `{__name__="x", job="b"} 4`))...)
}

func gauge(name string, value float64) *dto.MetricFamily {
	return &dto.MetricFamily{Name: &name, Type: dto.MetricType_GAUGE.Enum(), Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &value}}}}
}

// Bodies may have the encodings of the Pushgateway, whose snappy is the framing format.
func TestSnappyIsFramed(t *testing.T) {
	r := newRig(t, t.TempDir())
	var framed bytes.Buffer
	z := snappy.NewBufferedWriter(&framed)
	if _, err := z.Write([]byte("x 1\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		encoding string
		body     []byte
		status   int
	}{
		"framed":                  {"snappy", framed.Bytes(), 200},
		"framed, in capitals":     {" SNAPPY", framed.Bytes(), 200},
		"a block":                 {"snappy", snappy.Encode(nil, []byte("x 1\n")), 400},
		"a frame that is cut":     {"snappy", framed.Bytes()[:framed.Len()-1], 400},
		"a frame that is damaged": {"snappy", append(bytes.Clone(framed.Bytes()[:framed.Len()-1]), 'y'), 400},
		"nothing":                 {"snappy", nil, 200},
	} {
		if w := r.encoded("PUT", "/metrics/job/j", tc.encoding, tc.body); w.Code != tc.status {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, tc.status)
		}
	}
}

// TestLongGroupLabelsAreBounded: a short body may have very many metrics, each of which gets all labels of its group. Memory for
// these is taken before they are made.
func TestLongGroupLabelsAreBounded(t *testing.T) {
	path := "/metrics/job/j"
	for i := range 6 {
		path += fmt.Sprintf("/l%d/%s", i, strings.Repeat("x", 4000))
	}
	const metrics = 3000
	f := gauge("a", 0)
	for range metrics - 1 {
		f.Metric = append(f.Metric, &dto.Metric{Gauge: &dto.Gauge{}})
	}
	var delimited bytes.Buffer
	if _, err := protodelim.MarshalTo(&delimited, f); err != nil {
		t.Fatal(err)
	}
	for kind, body := range map[string]string{exposition.Protobuf: delimited.String(), "": strings.Repeat("a 1\n", metrics)} {
		r := newRig(t, t.TempDir())
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w := r.do("PUT", path, kind, body)
		runtime.ReadMemStats(&after)
		if grew := (after.TotalAlloc - before.TotalAlloc) >> 20; w.Code != 413 || grew > 40 {
			t.Errorf("%q: %d bytes: status %d %s, %d MiB were allocated", kind, len(body), w.Code, w.Body, grew)
		}
		if n := len(r.store.all()); n != 0 {
			t.Errorf("%q: it left %d groups", kind, n)
		}
	}
}
