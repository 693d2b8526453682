package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"
)

// pushRequest is one request to a Pushgateway. In the path and in a text body, {c} stands for the
// name of its case, and {b64:x} for x in base64url.
type pushRequest struct {
	method, path string
	headers      []string // name, value, …
	text         string
	families     []*dto.MetricFamily // delimited protobuf in the place of text; {c} in names
	body         []byte              // in the place of both, or made of them by of
	pack         func([]byte) []byte // compresses the body; may be nil
}

// pushCase is requests one after the other, under names that no other case has.
type pushCase struct {
	name     string
	differs  string // the row of docs/reference/receivers.md that says how the answers differ; "" if they do not
	requests []pushRequest
}

func nameOfCase(i int) string { return fmt.Sprintf("c%03d", i) }

var base64Of = regexp.MustCompile(`\{b64:([^}]*)\}`)

// of returns the request of the i-th case.
func (r pushRequest) of(i int) pushRequest {
	named := func(s string) string {
		s = strings.ReplaceAll(s, "{c}", nameOfCase(i))
		return base64Of.ReplaceAllStringFunc(s, func(m string) string {
			return base64.RawURLEncoding.EncodeToString([]byte(m[len("{b64:") : len(m)-1]))
		})
	}
	r.path = named(r.path)
	switch {
	case r.body != nil:
	case r.families == nil:
		r.body = []byte(named(r.text))
	default:
		var b bytes.Buffer
		for _, f := range r.families {
			f = proto.Clone(f).(*dto.MetricFamily)
			f.Name = proto.String(named(f.GetName()))
			_, _ = protodelim.MarshalTo(&b, f) // of a buffer there is no error
		}
		r.body = b.Bytes()
	}
	if r.pack != nil {
		r.body = r.pack(r.body)
	}
	return r
}

const delimited = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

func put(path, text string) pushRequest { return pushRequest{method: "PUT", path: path, text: text} }

func add(path, text string) pushRequest { return pushRequest{method: "POST", path: path, text: text} }

func del(path string) pushRequest { return pushRequest{method: "DELETE", path: path} }

// with is r with headers.
func (r pushRequest) with(headers ...string) pushRequest {
	r.headers = headers
	return r
}

// pushCases returns the documented cases of the API (the section API of the Pushgateway's README), and the ways in
// which a request can be wrong. It leaves out cases after which a Pushgateway has contradicting series and refuses
// every push, and labels with a zero byte, which the agent's pull endpoint does not show in text.
func pushCases() []pushCase {
	return slices.Concat(pushPaths(), pushTexts(), pushGroups(), pushProtobuf(), pushEncodings(), pushRoutes())
}

// The rows of the table of differences.
const (
	rowRouter   = "a path with `//`, with dots, or without a job"
	rowTwice    = "a label twice in the path"
	rowMany     = "more than 32 labels in the path"
	rowUTF8     = "UTF-8 names, and `U__…` in the path"
	rowOwnTimes = "a metric called `push_time_seconds` or `push_failure_time_seconds`"
	rowOwn      = "a metric called as one of the Pushgateway's own"
	rowEmpty    = "two groups that differ in labels without a value only"
	rowFamily   = "a family twice in one body of protobuf"
	rowType     = "protobuf that is not called delimited `MetricFamily` in full"
	rowSnappy   = "`Content-Encoding: snappy`, or `GZIP` in capitals"
	rowEncoding = "`Content-Encoding: zstd`, `x-gzip`, or an unknown one"
	rowPages    = "everything but pushes and deletions"
	rowBrowser  = "a request from another site's page, or for a host that is not loopback"
	rowNoJob    = "an empty job, `/metrics/job@base64/=`"
)

// pushPaths returns the paths, each with PUT, POST and DELETE.
func pushPaths() (all []pushCase) {
	for _, p := range []struct{ path, differs string }{
		{"/metrics/job/{c}", ""},
		{"/metrics/job/{c}/", ""},
		{"/metrics/job/{c}?a=b", ""},
		{"/metrics/job/{c}/instance/i", ""},
		{"/metrics/job/{c}/instance/i/", ""},
		{"/metrics/job/{c}/instance/", ""},
		{"/metrics/job/{c}/instance", ""},
		{"/metrics/job/{c}/a/b/c/d", ""},
		{"/metrics/job/{c}/a/b/c", ""},
		{"/metrics/job/{c}/a/b/c/", ""},
		{"/metrics/job/{c}/path/var%2Ftmp", ""},
		{"/metrics/job/{c}/path/var%2Ftmp%2Fx", ""},
		{"/metrics/job/{c}%2Fpath/x", ""},
		{"/metrics/job/{c}/path/a%20b+c%25d%3Fe", ""},
		{"/metrics/job/{c}/path@base64/L3Zhci90bXA", ""},
		{"/metrics/job/{c}/path@base64/L3Zhci90bXA=", ""},
		{"/metrics/job/{c}/path@base64/L3Zhci90bXA==", ""},
		{"/metrics/job/{c}/first_label@base64/=/second_label/foobar", ""},
		{"/metrics/job/{c}/first_label@base64/", ""},
		{"/metrics/job/{c}/path@base64/a", ""},
		{"/metrics/job/{c}/path@base64/!!", ""},
		{"/metrics/job/{c}/path@base64/+x", ""},
		{"/metrics/job/{c}/path@base32/x", rowUTF8}, // not base64: a name with an @
		{"/metrics/job@base64/{b64:{c}/x}", ""},
		{"/metrics/job@base64/{b64:{c}/x}=/instance/i", ""},
		{"/metrics/job@base64/!!", ""},
		{"/metrics/job/{c}/name/%CE%A0%CF%81%CE%BF%CE%BC%CE%B7%CE%B8%CE%B5%CF%8D%CF%82", ""},
		{"/metrics/job/{c}/name@base64/zqDPgc6_zrzOt864zrXPjc-C", ""},
		{"/metrics/job/{c}/__name__/x", ""},
		{"/metrics/job/{c}/__foo/x", ""},
		{"/metrics/job/{c}/__foo@base64/eA", ""},
		{"/metrics/job/{c}/_foo/x", ""},
		{"/metrics/job/{c}/U__in_xxx_valid/x", ""},
		{"/metrics/job/{c}/U__foo_2e_bar/baz", rowUTF8},
		{"/metrics/job/{c}/U__foo_2e_bar@base64/YmF6", rowUTF8},
		{"/metrics/job/{c}/U___55_____foo/baz", rowUTF8},
		{"/metrics/job/{c}/foo.bar/baz", rowUTF8},
		{"/metrics/job/{c}/a-b/x", rowUTF8},
		{"/metrics/job/{c}/%C3%A9/x", rowUTF8},
		{"/metrics/job/{c}/1a/x", rowUTF8},
		{"/metrics/job/{c}/a/b/a/c", rowTwice},
		{"/metrics/job/{c}/job/other", rowTwice},
		{"/metrics/job/{c}" + strings.Repeat("/a", 2*40), rowTwice},
		{"/metrics/job/{c}" + labelsInPath(40), rowMany},
		{"/metrics/job/{c}" + labelsInPath(31), ""},
		{"/metrics/job/{c}/path//var/tmp", rowRouter},
		{"/metrics/job/{c}/path/%2Fvar%2Ftmp", rowRouter},
		{"/metrics/job/{c}//", rowRouter},
		{"/metrics//job/{c}", rowRouter},
		{"/metrics/job/{c}/path/../x", rowRouter},
		{"/metrics/job//instance/{c}", rowRouter},
		{"/metrics/job/", rowRouter},
		{"/metrics/instance/{c}", rowRouter},
		{"/metrics/jobs/{c}", rowRouter},
		{"/metrics/U__job/{c}", rowRouter},
	} {
		all = append(all, pushCase{"path " + p.path, p.differs, []pushRequest{
			put(p.path, "{c}_a{instance=\"own\",job=\"theirs\",x=\"y\"} 1\n{c}_b 1\n"), add(p.path, "{c}_b 2\n"), del(p.path),
		}})
	}
	return all
}

func labelsInPath(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "/l%d/v", i)
	}
	return b.String()
}

// pushTexts are bodies of text, each into a group that is not there, and into one that is.
func pushTexts() (all []pushCase) {
	for _, p := range []struct{ name, text, differs string }{
		{"empty", "", ""},
		{"README", "# TYPE {c}_some_metric counter\n{c}_some_metric{label=\"val1\"} 42\n# TYPE {c}_another_metric gauge\n# HELP {c}_another_metric Just an example.\n{c}_another_metric 2398.283\n", ""},
		{"untyped", "{c}_x 3.14\n", ""},
		{"summary", "# TYPE {c}_x summary\n{c}_x{quantile=\"0.5\"} 1\n{c}_x_sum 1\n{c}_x_count 2\n", ""},
		{"histogram", "# TYPE {c}_x histogram\n{c}_x_bucket{le=\"1.0\"} 1\n{c}_x_bucket{le=\"+Inf\"} 2\n{c}_x_sum 3\n{c}_x_count 2\n", ""},
		{"values", "{c}_x{v=\"a\"} NaN\n{c}_x{v=\"b\"} +Inf\n{c}_x{v=\"c\"} -Inf\n{c}_x{v=\"d\"} 1.5e-7\n{c}_x{v=\"e\"} 0x1p-2\n", ""},
		{"escapes", "{c}_x{v=\"a\\\\b\\\"c\\nd\"} 1\n", ""},
		{"blanks", "  {c}_x  {  v = \"a\" , }   1  \n\n# a comment\n", ""},
		{"a label without a value", "{c}_x{v=\"\"} 1\n", ""},
		{"an instance", "{c}_x{instance=\"i\"} 1\n", ""},
		{"without a last newline", "{c}_x 1", ""},
		{"carriage returns", "{c}_x 1\r\n", ""},
		{"a timestamp", "{c}_x 1 1700000000000\n", ""},
		{"no value", "{c}_x\n", ""},
		{"an open brace", "{c}_x{ 1\n", ""},
		{"no exposition", "<html>{c}</html>\n", ""},
		{"a number first", "1{c}_x 1\n", ""},
		{"a label twice", "{c}_x{a=\"1\",a=\"2\"} 1\n", ""},
		{"a series twice", "{c}_x 1\n{c}_x 1\n", ""},
		{"a series twice, by the labels of the group", "{c}_x{job=\"a\"} 1\n{c}_x{job=\"b\"} 2\n", ""},
		{"a reserved label", "{c}_x{__foo=\"a\"} 1\n", ""},
		{"the label __name__", "{c}_x{__name__=\"a\"} 1\n", ""},
		{"two types", "# TYPE {c}_x counter\n# TYPE {c}_x gauge\n{c}_x 1\n", ""},
		{"an unknown type", "# TYPE {c}_x info\n{c}_x 1\n", ""},
		{"a type and no series", "# TYPE {c}_x counter\n", ""},
		{"not UTF-8", "{c}_x{a=\"\xff\"} 1\n", ""},
		{"a summary and its count", "# TYPE {c}_x summary\n{c}_x_sum 1\n{c}_x_count 2\n# TYPE {c}_x_count counter\n{c}_x_count{a=\"b\"} 2\n", ""},
		{"quoted names", "{\"{c}.x\",\"a.b\"=\"c\"} 1\n", rowUTF8},
		{"push_time_seconds", "push_time_seconds{x=\"{c}\"} 1\n", rowOwnTimes},
		{"push_failure_time_seconds", "# TYPE push_failure_time_seconds gauge\npush_failure_time_seconds{x=\"{c}\"} 1\n", rowOwnTimes},
		{"go_goroutines", "# TYPE go_goroutines counter\ngo_goroutines{x=\"{c}\"} 1\n", rowOwn},
		{"pushgateway_build_info", "pushgateway_build_info{x=\"{c}\"} 1\n", rowOwn},
	} {
		all = append(all,
			pushCase{"text, " + p.name, p.differs, []pushRequest{put("/metrics/job/{c}", p.text), del("/metrics/job/{c}")}},
			pushCase{"text into a group, " + p.name, p.differs, []pushRequest{put("/metrics/job/{c}", "{c}_old 1\n"), add("/metrics/job/{c}", p.text), add("/metrics/job/{c}", "{c}_new 1\n")}},
		)
	}
	return all
}

// pushGroups are several pushes, to one group and to two.
func pushGroups() []pushCase {
	const one, two = "/metrics/job/{c}", "/metrics/job/{c}/instance/i"
	return []pushCase{
		{"PUT replaces a group", "", []pushRequest{put(one, "{c}_a 1\n{c}_b 1\n"), put(one, "{c}_b 2\n"), put(one, "")}},
		{"POST replaces a family", "", []pushRequest{put(one, "{c}_a{x=\"1\"} 1\n{c}_a{x=\"2\"} 1\n{c}_b 1\n"), add(one, "{c}_a{x=\"3\"} 2\n"), add(one, "")}},
		{"a group that is not there", "", []pushRequest{del(one), del(one)}},
		{"a deleted group", "", []pushRequest{put(one, "{c}_a 1\n"), del(one), add(one, "{c}_b 1\n"), del(one)}},
		{"a deletion with a body", "", []pushRequest{put(one, "{c}_a 1\n"), {method: "DELETE", path: one, text: "{c}_a 2\n"}}},
		{"a deletion leaves other groups", "", []pushRequest{put(one, "{c}_a 1\n"), put(two, "{c}_a 1\n"), del(one)}},
		{"a failure is kept", "", []pushRequest{put(one, "{c}_a 1\n"), put(one, "{c}_a 1 1\n"), put(one, "{c}_a 2\n"), put(one, "{c}_a{ 2\n")}},
		{"a failure comes first", "", []pushRequest{put(one, "{c}_a 1 1\n"), add(one, "{c}_a 1 1\n"), add(one, "{c}_a 2\n"), del(one)}},
		{"a failure comes first and is deleted", "", []pushRequest{put(one, "{c}_a 1 1\n"), del(one), put(one, "{c}_a{\n")}},
		{"another type in the same group", "", []pushRequest{put(one, "# TYPE {c}_a counter\n{c}_a 1\n"), add(one, "# TYPE {c}_a gauge\n{c}_a 1\n"), put(one, "{c}_a 1\n")}},
		{"another type in another group", "", []pushRequest{put(one, "# TYPE {c}_a counter\n{c}_a 1\n"), put(two, "# TYPE {c}_a gauge\n{c}_a 1\n"), del(one), put(two, "# TYPE {c}_a gauge\n{c}_a 1\n")}},
		{"no type in another group", "", []pushRequest{put(one, "# TYPE {c}_a gauge\n{c}_a 1\n"), add(two, "{c}_a 1\n"), put(one, "{c}_a 1\n"), add(two, "{c}_a 1\n")}},
		{"another help in another group", "", []pushRequest{put(one, "# HELP {c}_a One.\n{c}_a 1\n"), put(two, "# HELP {c}_a Two.\n{c}_a 1\n")}},
		{"the count of a summary in another group", "", []pushRequest{put(one, "# TYPE {c}_a summary\n{c}_a_sum 1\n{c}_a_count 1\n"), put(two, "{c}_a_count 1\n"), put(two, "{c}_a_bucket 1\n")}},
		{"a histogram beside its sum", "", []pushRequest{put(one, "{c}_a_sum 1\n"), put(two, "# TYPE {c}_a histogram\n{c}_a_bucket{le=\"+Inf\"} 1\n{c}_a_sum 1\n{c}_a_count 1\n")}},
		{"a histogram beside its bucket", "", []pushRequest{put(one, "{c}_a_bucket 1\n"), put(two, "# TYPE {c}_a histogram\n{c}_a_bucket{le=\"+Inf\"} 1\n{c}_a_sum 1\n{c}_a_count 1\n")}},
		{"a series that another group has", "", []pushRequest{put(one, "{c}_a{instance=\"i\"} 1\n"), put(two, "{c}_a 1\n"), put(one, "{c}_a 1\n"), put(two, "{c}_a 1\n")}},
		{"the same labels but for an empty one", rowEmpty, []pushRequest{put(one, "{c}_a 1\n"), put(one+"/x@base64/=", "{c}_b 1\n"), del(one)}},
		{"base64 and plain are one group", "", []pushRequest{put(two, "{c}_a 1\n"), add("/metrics/job@base64/{b64:{c}}/instance@base64/{b64:i}", "{c}_b 1\n"), del(one + "/instance@base64/aQ")}},
		{"the order of labels does not matter", "", []pushRequest{put(one+"/a/1/b/2", "{c}_a 1\n"), add(one+"/b/2/a/1", "{c}_b 1\n"), del(one + "/b/2/a/1")}},
	}
}

func gaugeOf(value float64, labels ...string) *dto.Metric {
	m := &dto.Metric{Gauge: &dto.Gauge{Value: &value}}
	for i := 0; i+1 < len(labels); i += 2 {
		m.Label = append(m.Label, &dto.LabelPair{Name: &labels[i], Value: &labels[i+1]})
	}
	return m
}

func families(name string, kind dto.MetricType, metrics ...*dto.Metric) []*dto.MetricFamily {
	return []*dto.MetricFamily{{Name: &name, Type: &kind, Metric: metrics}}
}

// pushProtobuf are bodies of protobuf.
func pushProtobuf() (all []pushCase) {
	one, count := 1.0, uint64(1)
	bounds := []*dto.Bucket{{UpperBound: &one, CumulativeCount: &count}}
	counter := &dto.Metric{Counter: &dto.Counter{Value: &one}}
	gauge := dto.MetricType_GAUGE
	for _, p := range []struct {
		name     string
		families []*dto.MetricFamily
		differs  string
	}{
		{"gauge", families("{c}_a", gauge, gaugeOf(1, "x", "y"), gaugeOf(2, "x", "z")), ""},
		{"counter", families("{c}_a", dto.MetricType_COUNTER, counter), ""},
		{"untyped", families("{c}_a", dto.MetricType_UNTYPED, &dto.Metric{Untyped: &dto.Untyped{Value: &one}}), ""},
		{"summary", families("{c}_a", dto.MetricType_SUMMARY, &dto.Metric{Summary: &dto.Summary{SampleCount: &count, SampleSum: &one, Quantile: []*dto.Quantile{{Quantile: &one, Value: &one}}}}), ""},
		{"histogram", families("{c}_a", dto.MetricType_HISTOGRAM, &dto.Metric{Histogram: &dto.Histogram{SampleCount: &count, SampleSum: &one, Bucket: bounds}}), ""},
		{"two families", append(families("{c}_a", gauge, gaugeOf(1)), families("{c}_b", gauge, gaugeOf(1))...), ""},
		{"a family without a type", []*dto.MetricFamily{{Name: proto.String("{c}_a"), Metric: []*dto.Metric{counter}}}, ""},
		{"a family without a type that is a gauge", []*dto.MetricFamily{{Name: proto.String("{c}_a"), Metric: []*dto.Metric{gaugeOf(1)}}}, ""},
		{"a gauge that holds a counter", families("{c}_a", gauge, counter), ""},
		{"a counter that holds a gauge", families("{c}_a", dto.MetricType_COUNTER, gaugeOf(1)), ""},
		{"a summary that holds a gauge", families("{c}_a", dto.MetricType_SUMMARY, gaugeOf(1)), ""},
		{"a histogram that holds a gauge", families("{c}_a", dto.MetricType_HISTOGRAM, gaugeOf(1)), ""},
		{"an untyped one that holds a gauge", families("{c}_a", dto.MetricType_UNTYPED, gaugeOf(1)), ""},
		{"a metric without a value", families("{c}_a", gauge, &dto.Metric{}), ""},
		{"a family without metrics", families("{c}_a", gauge), ""},
		{"a timestamp", families("{c}_a", gauge, &dto.Metric{Gauge: &dto.Gauge{Value: &one}, TimestampMs: proto.Int64(1)}), ""},
		{"a reserved label", families("{c}_a", gauge, gaugeOf(1, "__foo", "x")), ""},
		{"a label twice", families("{c}_a", gauge, gaugeOf(1, "x", "1", "x", "2")), ""},
		{"a label that is not UTF-8", families("{c}_a", gauge, gaugeOf(1, "x", "\xff")), ""},
		{"a summary with a label quantile", families("{c}_a", dto.MetricType_SUMMARY, &dto.Metric{Summary: &dto.Summary{SampleCount: &count, SampleSum: &one}, Label: gaugeOf(1, "quantile", "1").Label}), ""},
		{"a series twice", families("{c}_a", gauge, gaugeOf(1), gaugeOf(2)), ""},
		{"a family twice", append(families("{c}_a", gauge, gaugeOf(1)), families("{c}_a", gauge, gaugeOf(2))...), rowFamily},
		{"a label with a dash", families("{c}_a", gauge, gaugeOf(1, "a-b", "x")), rowUTF8},
		{"a label without a name", families("{c}_a", gauge, gaugeOf(1, "", "x")), ""},
	} {
		r := pushRequest{method: "PUT", path: "/metrics/job/{c}", families: p.families, headers: []string{"Content-Type", delimited}}
		all = append(all, pushCase{"protobuf, " + p.name, p.differs, []pushRequest{r, del(r.path)}})
	}
	good := pushRequest{method: "POST", path: "/metrics/job/{c}", families: families("{c}_a", gauge, gaugeOf(1))}
	cut := func(b []byte) []byte { return b[:len(b)-1] }
	damaged := good.with("Content-Type", delimited)
	damaged.pack = cut
	return append(all,
		pushCase{"protobuf that is cut", "", []pushRequest{damaged}},
		pushCase{"protobuf without a content type", "", []pushRequest{good}},
		pushCase{"protobuf, compact text", rowType, []pushRequest{good.with("Content-Type", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=compact-text")}},
		pushCase{"protobuf without its message", rowType, []pushRequest{good.with("Content-Type", "application/vnd.google.protobuf; encoding=delimited")}},
		pushCase{"protobuf of an unknown encoding", rowType, []pushRequest{good.with("Content-Type", "application/vnd.google.protobuf")}},
	)
}

func gzipOf(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b) // of a buffer there is no error
	_ = z.Close()     // likewise
	return out.Bytes()
}

func framesOf(b []byte) []byte {
	var out bytes.Buffer
	z := snappy.NewBufferedWriter(&out)
	_, _ = z.Write(b) // of a buffer there is no error
	_ = z.Close()     // likewise
	return out.Bytes()
}

func zstdOf(b []byte) []byte {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		return nil
	}
	defer z.Close()
	return z.EncodeAll(b, nil)
}

// pushEncodings are content types and encodings.
func pushEncodings() (all []pushCase) {
	text := add("/metrics/job/{c}", "{c}_a 1\n")
	for _, kind := range []string{
		"text/plain", "text/plain; version=0.0.4; charset=utf-8", "application/x-www-form-urlencoded", "application/json",
		"application/openmetrics-text; version=1.0.0", "nonsense;;", "application/octet-stream",
	} {
		all = append(all, pushCase{"content type " + kind, "", []pushRequest{text.with("Content-Type", kind)}})
	}
	cut := func(pack func([]byte) []byte) func([]byte) []byte {
		return func(b []byte) []byte { b = pack(b); return b[:len(b)/2] }
	}
	for _, p := range []struct {
		name, encoding string
		pack           func([]byte) []byte
		differs        string
	}{
		{"gzip", "gzip", gzipOf, ""},
		{"gzip in capitals", "GZIP", gzipOf, rowSnappy},
		{"gzip that is none", "gzip", nil, ""},
		{"gzip that is cut", "gzip", cut(gzipOf), ""},
		{"identity", "identity", nil, ""},
		{"snappy frames", "snappy", framesOf, rowSnappy},
		{"snappy frames that are cut", "snappy", cut(framesOf), ""},
		{"a snappy block", "snappy", func(b []byte) []byte { return snappy.Encode(nil, b) }, rowSnappy},
		{"plain text called snappy", "snappy", nil, rowSnappy},
		{"x-gzip", "x-gzip", gzipOf, rowEncoding},
		{"zstd", "zstd", zstdOf, rowEncoding},
		{"deflate that is none", "deflate", nil, rowEncoding},
	} {
		r := text.with("Content-Encoding", p.encoding)
		r.pack = p.pack
		all = append(all, pushCase{p.name, p.differs, []pushRequest{r, del(r.path)}})
	}
	return all
}

// pushRoutes are other methods and other paths.
func pushRoutes() (all []pushCase) {
	for _, method := range []string{"GET", "PATCH"} {
		all = append(all, pushCase{method + " of a group", "", []pushRequest{{method: method, path: "/metrics/job/{c}"}}})
	}
	for _, r := range []struct{ method, path, differs string }{
		{"GET", "/-/healthy", ""},
		{"GET", "/-/ready", ""},
		{"GET", "/metrics", rowPages},
		{"GET", "/", rowPages},
		{"GET", "/status", rowPages},
		{"GET", "/api/v1/status", rowPages},
		{"GET", "/api/v1/metrics", rowPages},
		{"PUT", "/-/quit", rowPages},
		{"PUT", "/api/v1/admin/wipe", ""},
		{"GET", "/nothing", ""},
		{"PUT", "/nothing", ""},
		{"PUT", "/metrics", rowPages},
		{"PUT", "/metrics/", rowRouter},
		{"PUT", "/metrics/job", rowRouter},
		{"PUT", "/metrics/job@base64/=", rowNoJob},
	} {
		all = append(all, pushCase{r.method + " " + r.path, r.differs, []pushRequest{{method: r.method, path: r.path}}})
	}
	text := add("/metrics/job/{c}", "{c}_a 1\n")
	return append(all,
		pushCase{"another host", rowBrowser, []pushRequest{text.with("Host", "elsewhere.example")}},
		pushCase{"another site", rowBrowser, []pushRequest{text.with("Sec-Fetch-Site", "cross-site")}},
		pushCase{"the same site", "", []pushRequest{text.with("Sec-Fetch-Site", "same-origin")}},
	)
}
