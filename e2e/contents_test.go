package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
)

// contents is what a receiver holds: by series, and of each the values by time in
// milliseconds. A time has several values where a receiver keeps all that it was sent.
type contents map[string]map[int64][]string

// staleText is how contents show a stale marker.
const staleText = "stale"

func (c contents) add(series string, t int64, v string) {
	if c[series] == nil {
		c[series] = make(map[int64][]string)
	}
	if !slices.Contains(c[series][t], v) {
		c[series][t] = append(c[series][t], v)
	}
}

// addSeries adds what a protobuf message has of a series.
func (c contents) addSeries(ts *prompb.TimeSeries) {
	lb := labels.NewScratchBuilder(len(ts.Labels))
	name := ts.ToLabels(&lb, nil).String()
	for _, s := range ts.Samples {
		c.add(name, s.Timestamp, floatText(s.Value))
	}
	for _, h := range ts.Histograms {
		c.add(name, h.Timestamp, histogramText(h))
	}
}

func floatText(v float64) string {
	if math.Float64bits(v) == value.StaleNaN {
		return staleText
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// histogramText returns the same for histograms that differ in the layout of empty buckets
// only, which receivers change.
func histogramText(h prompb.Histogram) string {
	kind, f := "float", (*histogram.FloatHistogram)(nil)
	if h.IsFloatHistogram() {
		f = h.ToFloatHistogram()
	} else {
		kind, f = "int", h.ToIntHistogram().ToFloat(nil)
	}
	return nativeText(kind, f)
}

// nativeText returns the text of a histogram of that kind, which f has in floats.
func nativeText(kind string, f *histogram.FloatHistogram) string {
	if math.Float64bits(f.Sum) == value.StaleNaN {
		return staleText
	}
	var buckets []bucket
	for it := f.AllBucketIterator(); it.Next(); {
		b := it.At()
		buckets = append(buckets, bucket{b.Lower, b.Upper, b.Count})
	}
	return kind + " " + bucketsText(f.Count, f.Sum, buckets)
}

// bucket is one of a histogram: its bounds and what it counts.
type bucket struct{ from, to, count float64 }

func bucketsText(count, sum float64, buckets []bucket) string {
	var text strings.Builder
	fmt.Fprintf(&text, "count=%g sum=%g", count, sum)
	for _, b := range buckets {
		if b.count != 0 {
			fmt.Fprintf(&text, " %g..%g:%g", b.from, b.to, b.count)
		}
	}
	return text.String()
}

// samples returns how many there are.
func (c contents) samples() (n int) {
	for _, times := range c {
		n += len(times)
	}
	return n
}

// lacks lists what c has and other has not.
func (c contents) lacks(other contents) (missing []string) {
	for series, times := range c {
		for t, values := range times {
			for _, v := range values {
				if !slices.Contains(other[series][t], v) {
					missing = append(missing, fmt.Sprintf("%s @%d = %s (there: %v)", series, t, v, other[series][t]))
				}
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// some returns the beginning of a long list, for messages.
func some(list []string) string {
	const most = 10
	if len(list) > most {
		return strings.Join(list[:most], "\n") + fmt.Sprintf("\nand %d more", len(list)-most)
	}
	return strings.Join(list, "\n")
}

// remoteRead reads back every sample of a Prometheus, unaltered: stale markers and
// histograms too.
func remoteRead(t *testing.T, from string) contents {
	t.Helper()
	all := &prompb.Query{
		StartTimestampMs: time.Now().Add(-24 * time.Hour).UnixMilli(), EndTimestampMs: time.Now().Add(24 * 7 * time.Hour).UnixMilli(),
		Matchers: []*prompb.LabelMatcher{{Type: prompb.LabelMatcher_RE, Name: "__name__", Value: ".+"}},
	}
	raw, err := (&prompb.ReadRequest{Queries: []*prompb.Query{all}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	body := do(t, http.MethodPost, from, snappy.Encode(nil, raw), map[string]string{
		"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf", "X-Prometheus-Remote-Read-Version": "0.1.0",
	})
	if raw, err = snappy.Decode(nil, body); err != nil {
		t.Fatal(err)
	}
	var resp prompb.ReadResponse
	if err := resp.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	c := make(contents)
	for _, r := range resp.Results {
		for _, ts := range r.Timeseries {
			c.addSeries(ts)
		}
	}
	return c
}

// victoriaExport reads back every sample of a VictoriaMetrics.
func victoriaExport(t *testing.T, base string) contents {
	t.Helper()
	do(t, http.MethodGet, base+"/internal/force_flush", nil, nil)
	now := time.Now()
	query := url.Values{
		"match[]": {`{__name__!=""}`},
		"start":   {fmt.Sprint(now.Add(-24 * time.Hour).Unix())}, "end": {fmt.Sprint(now.Add(7 * 24 * time.Hour).Unix())},
	}
	body := do(t, http.MethodGet, base+"/api/v1/export?"+query.Encode(), nil, nil)
	body = bytes.ReplaceAll(body, []byte("NaN"), []byte("null")) // it writes both
	c := make(contents)
	for d := json.NewDecoder(bytes.NewReader(body)); ; {
		var line struct {
			Metric     map[string]string
			Values     []*float64 // null is NaN
			Timestamps []int64
		}
		err := d.Decode(&line)
		if errors.Is(err, io.EOF) {
			return c
		}
		if err != nil {
			t.Fatalf("export: %v in %s", err, body)
		}
		name := labels.FromMap(line.Metric).String()
		for i, v := range line.Values {
			text := staleText
			if v != nil {
				text = floatText(*v)
			}
			c.add(name, line.Timestamps[i], text)
		}
	}
}

// queryHistograms adds the histograms of a metric by a query, for a Prometheus whose remote
// read leaves them out. A query does not tell those of integers from those of floats.
func queryHistograms(t *testing.T, base, metric string, c contents) {
	t.Helper()
	var answer struct {
		Data struct {
			Result []struct {
				Metric     map[string]string
				Histograms [][2]json.RawMessage // seconds, and the histogram
			}
		}
	}
	body := do(t, http.MethodGet, base+"/api/v1/query?query="+url.QueryEscape(metric+"[1h]"), nil, nil)
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("histograms: %v in %s", err, body)
	}
	for _, series := range answer.Data.Result {
		name := labels.FromMap(series.Metric).String()
		for _, h := range series.Histograms {
			var seconds float64
			var shape struct {
				Count, Sum float64  `json:",string"`
				Buckets    [][4]any // rule, from, to, count: a number and three texts
			}
			if err := errors.Join(json.Unmarshal(h[0], &seconds), json.Unmarshal(h[1], &shape)); err != nil {
				t.Fatalf("histograms: %v in %s", err, h[1])
			}
			var buckets []bucket
			for _, b := range shape.Buckets {
				buckets = append(buckets, bucket{number(t, b[1]), number(t, b[2]), number(t, b[3])})
			}
			c.add(name, int64(math.Round(seconds*1000)), bucketsText(shape.Count, shape.Sum, buckets))
		}
	}
}

// number reads a number that JSON has as a text.
func number(t *testing.T, v any) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// queryExemplars returns the exemplars of a metric by their trace_id.
func queryExemplars(t *testing.T, base, metric string) map[string]float64 {
	t.Helper()
	end := time.Now().Add(time.Hour).Unix()
	body := do(t, http.MethodGet, fmt.Sprintf("%s/api/v1/query_exemplars?query=%s&start=%d&end=%d", base, metric, end-7200, end), nil, nil)
	var answer struct {
		Data []struct {
			Exemplars []struct {
				Labels map[string]string
				Value  json.RawMessage // a number or, in Prometheus' own API, a text
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("exemplars: %v in %s", err, body)
	}
	found := make(map[string]float64)
	for _, series := range answer.Data {
		for _, e := range series.Exemplars {
			v, err := strconv.ParseFloat(strings.Trim(string(e.Value), `"`), 64)
			if err != nil {
				t.Fatalf("exemplar: %v", err)
			}
			found[e.Labels["trace_id"]] = v
		}
	}
	return found
}

// do returns a request that must be answered by 2xx.
func do(t *testing.T, method, to string, body []byte, header map[string]string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, to, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := httpClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s %v %s", method, to, resp.Status, err, answer)
	}
	return answer
}
