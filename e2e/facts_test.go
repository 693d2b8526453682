package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// fact is one kind of data that receivers differ about. It is sent in the middle of a
// request, between two good samples of other series.
type fact struct {
	row string // of the table in docs/reference/receivers.md
	// before are requests of their own that come first.
	before []prompb.TimeSeries
	bad    prompb.TimeSeries
}

// odd is the value that tells the sample in question from the good ones.
const odd = 2

func facts(now time.Time) []fact {
	at := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
	one := func(t int64, v float64, labels ...string) prompb.TimeSeries {
		ts := prompb.TimeSeries{Samples: []prompb.Sample{{Value: v, Timestamp: t}}}
		for i := 0; i+1 < len(labels); i += 2 {
			ts.Labels = append(ts.Labels, prompb.Label{Name: labels[i], Value: labels[i+1]})
		}
		return ts
	}
	const name = "__name__"
	many := []string{name, "many_labels"}
	for i := range 34 {
		many = append(many, fmt.Sprintf("label_%02d", i), "x")
	}
	wrongOrder := one(at(0), odd, name, "wrong_order")
	wrongOrder.Samples = []prompb.Sample{{Value: 1, Timestamp: at(0)}, {Value: odd, Timestamp: at(-time.Second)}}
	native := one(0, 0, name, "native")
	native.Samples = nil
	h := &histogram.Histogram{Count: odd, Sum: odd, PositiveSpans: []histogram.Span{{Length: 1}}, PositiveBuckets: []int64{odd}}
	native.Histograms = []prompb.Histogram{prompb.FromIntHistogram(at(0), h)}
	repeated := func(metric string, older bool, v float64) fact {
		f := fact{before: []prompb.TimeSeries{one(at(-time.Second), v, name, metric)}, bad: one(at(-time.Second), odd, name, metric)}
		if older {
			f.before = append(f.before, one(at(0), 5, name, metric))
		}
		return f
	}
	row := func(f fact, row string) fact { f.row = row; return f }
	return []fact{
		{"late by 1 s", []prompb.TimeSeries{one(at(0), 5, name, "late")}, one(at(-time.Second), odd, name, "late")},
		{"late by 40 min", []prompb.TimeSeries{one(at(0), 5, name, "later")}, one(at(-40*time.Minute), odd, name, "later")},
		{"the series' first, 90 min old", nil, one(at(-90*time.Minute), odd, name, "old")},
		{"two samples of a series, the wrong way round", nil, wrongOrder},
		row(repeated("again", false, odd), "the newest sample again"),
		row(repeated("again_older", true, odd), "an older sample again"),
		row(repeated("other", false, 7), "the newest again, with another value"),
		row(repeated("other_older", true, 7), "an older one again, with another value"),
		{"a label without value", nil, one(at(0), odd, name, "empty_label", "a", "")},
		{"a label name with a dash", nil, one(at(0), odd, name, "dash", "a-b", "x")},
		{"a label value that is not UTF-8", nil, one(at(0), odd, name, "not_utf8", "a", "\xff")},
		{"a label twice", nil, one(at(0), odd, name, "twice", "a", "x", "a", "y")},
		{"no metric name", nil, one(at(0), odd, "a", "nameless")},
		{"35 labels", nil, one(at(0), odd, many...)},
		{"a label value of 20 KiB", nil, one(at(0), odd, name, "long_value", "a", strings.Repeat("x", 20<<10))},
		{"a native histogram", nil, native},
		{"ahead by 9 min", nil, one(at(9*time.Minute), odd, name, "ahead_9m")},
		{"ahead by 11 min", nil, one(at(11*time.Minute), odd, name, "ahead_11m")},
		{"ahead by 3 days", nil, one(at(72*time.Hour), odd, name, "ahead_3d")},
		{"after all that, a sample of now", nil, one(at(0), odd, name, "afterwards")},
	}
}

// try sends a fact to a receiver and says what came of it.
func (f fact) try(t *testing.T, b backend, e endpoint, now time.Time) string {
	t.Helper()
	for _, ts := range f.before {
		if status, text := deliver(t, e.write, b.v2, ts); status/100 != 2 {
			t.Fatalf("%s: the preparation is refused: %d %s", f.row, status, text)
		}
	}
	good := func(which string) prompb.TimeSeries {
		return prompb.TimeSeries{
			Labels:  []prompb.Label{{Name: "__name__", Value: "good"}, {Name: "of", Value: f.row}, {Name: "which", Value: which}},
			Samples: []prompb.Sample{{Value: 1, Timestamp: now.UnixMilli()}},
		}
	}
	before := f.stored(e.read())
	status, text := deliver(t, e.write, b.v2, good("first"), f.bad, good("last"))
	if status/100 != 2 {
		t.Logf("%s: %s: %d %s", b.name, f.row, status, strings.TrimSpace(text))
	}
	var first, last bool
	for series := range e.read() {
		if strings.Contains(series, `of="`+f.row+`"`) {
			first = first || strings.Contains(series, "first")
			last = last || strings.Contains(series, "last")
		}
	}
	bad := f.stored(e.read()) && (status/100 == 2 || !before)
	switch {
	case first && last && bad:
		return fmt.Sprintf("%d, all", status)
	case first && last:
		return fmt.Sprintf("%d, the rest", status)
	case first || last || bad:
		return fmt.Sprintf("%d, first %t, it %t, last %t", status, first, bad, last)
	default:
		return fmt.Sprintf("%d, nothing", status)
	}
}

// stored reports whether a receiver has the sample in question, whatever became of the label
// that is wrong.
func (f fact) stored(c contents) bool {
	for series, times := range c {
		if !f.isIn(series) {
			continue
		}
		for _, values := range times {
			if slices.ContainsFunc(values, func(v string) bool { return v == fmt.Sprint(odd) || strings.Contains(v, "count=2") }) {
				return true
			}
		}
	}
	return false
}

// isIn reports whether a series of the receiver is that in question.
func (f fact) isIn(series string) bool {
	for _, l := range f.bad.Labels {
		if l.Name == "__name__" {
			return strings.Contains(series, fmt.Sprintf("__name__=%q", l.Value))
		}
	}
	return strings.Contains(series, "nameless")
}

// deliver sends series by either protocol.
func deliver(t *testing.T, url string, v2 bool, series ...prompb.TimeSeries) (int, string) {
	t.Helper()
	if !v2 {
		raw, err := (&prompb.WriteRequest{Timeseries: series}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return post(t, httpClient(t), url, "", snappy.Encode(nil, raw))
	}
	symbols := writev2.NewSymbolTable()
	var req writev2.Request
	for _, ts := range series {
		var out writev2.TimeSeries
		for _, l := range ts.Labels {
			out.LabelsRefs = append(out.LabelsRefs, symbols.Symbolize(l.Name), symbols.Symbolize(l.Value))
		}
		for _, s := range ts.Samples {
			out.Samples = append(out.Samples, writev2.Sample{Value: s.Value, Timestamp: s.Timestamp})
		}
		for _, h := range ts.Histograms {
			out.Histograms = append(out.Histograms, writev2.FromIntHistogram(0, h.Timestamp, h.ToIntHistogram()))
		}
		req.Timeseries = append(req.Timeseries, out)
	}
	req.Symbols = symbols.Symbols()
	raw, err := req.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(snappy.Encode(nil, raw)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Encoding", "snappy")
	r.Header.Set("Content-Type", "application/x-protobuf;proto="+message2)
	r.Header.Set("X-Prometheus-Remote-Write-Version", "2.0.0")
	resp, err := httpClient(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestReceiverFacts measures what the table of docs/reference/receivers.md says.
func TestReceiverFacts(t *testing.T) {
	endToEnd(t)
	table := factsTable(t)
	for _, b := range realReceivers() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			e := b.start(t, b)
			now := time.Now().Truncate(time.Second)
			for _, f := range facts(now) {
				if got, want := f.try(t, b, e, now), table[f.row][b.name]; got != want {
					t.Errorf("%s, %s: got %q, docs/reference/receivers.md has %q", b.name, f.row, got, want)
				}
			}
		})
	}
}

// factsTable reads the table that follows <!-- facts --> in docs/reference/receivers.md, by row and
// column.
func factsTable(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/reference/receivers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "<!-- facts -->\n")
	if !ok {
		t.Fatal("docs/reference/receivers.md has no table of facts")
	}
	table := make(map[string]map[string]string)
	var columns []string
	for line := range strings.SplitSeq(after, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case columns == nil:
			columns = cells
		case strings.HasPrefix(cells[0], "--"):
		case len(cells) != len(columns):
			t.Fatalf("docs/reference/receivers.md: %d cells, want %d: %s", len(cells), len(columns), line)
		default:
			row := make(map[string]string)
			for i := 1; i < len(cells); i++ {
				row[columns[i]] = cells[i]
			}
			table[cells[0]] = row
		}
	}
	return table
}
