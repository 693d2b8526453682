package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"hwsagent/wal"
)

// openTestLog opens a log with small segments, which keeps what it gets.
func openTestLog(t *testing.T) (*wal.Log, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := wal.Open(wal.Options{Dir: dir, SegmentBytes: 6000, Settings: wal.Settings{Retain: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, dir
}

// commitEveryKind commits samples of each kind with time i seconds.
func commitEveryKind(t *testing.T, l *wal.Log, i int) {
	t.Helper()
	at := int64(i) * 1000
	app := l.AppenderV2(context.Background())
	add := func(name, family string, st int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, exemplars ...exemplar.Exemplar) {
		t.Helper()
		ls := labels.FromStrings("__name__", name, "job", "x")
		o := storage.AppendV2Options{MetricFamilyName: family, Exemplars: exemplars, Metadata: metadata.Metadata{Type: model.MetricTypeGauge, Unit: "seconds", Help: "Help of " + name}}
		if _, err := app.Append(0, ls, st, at, v, h, fh, o); err != nil {
			t.Fatal(err)
		}
	}
	add("plain", "plain", 0, float64(i), nil, nil, exemplar.Exemplar{Labels: labels.FromStrings("trace_id", fmt.Sprint(i)), Value: 7, Ts: at, HasTs: true})
	add("since", "since", at-500, float64(i)/3, nil, nil)
	add("parts_sum", "parts", 0, math.Inf(1), nil, nil)
	add("integers", "integers", 0, 0, tsdbutil.GenerateTestHistogram(int64(i)), nil)
	add("floats", "floats", at-1, 0, nil, tsdbutil.GenerateTestFloatHistogram(int64(i)))
	add("custom", "custom", 0, 0, tsdbutil.GenerateTestCustomBucketsHistogram(int64(i)), nil)
	add(fmt.Sprintf("stale_%d", i%20), "", 0, math.Float64frombits(value.StaleNaN), nil, nil)
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
}

func dumpText(t *testing.T, o DumpOptions) string {
	t.Helper()
	var out bytes.Buffer
	if err := Dump(t.Context(), o, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return out.String()
}

// A dump has every kind of record of every segment, as text and as JSON.
func TestDump(t *testing.T) {
	l, dir := openTestLog(t)
	for i := range 120 {
		commitEveryKind(t, l, i)
	}
	if n := l.Status().Segments; n < 3 {
		t.Fatalf("%d segments", n)
	}
	text := dumpText(t, DumpOptions{Storage: dir})
	for _, line := range []string{
		` header log `, ` commit 1: 7 records, 7 samples, 7 in all`, ` series {__name__="plain", job="x"}`,
		` {__name__="plain", job="x"} gauge unit="seconds" help="Help of plain"`, ` family {__name__="parts_sum", job="x"} of family parts`,
		` {__name__="plain", job="x"} 1970-01-01T00:00:03.000Z 3` + "\n",
		` {__name__="since", job="x"} 1970-01-01T00:00:03.000Z since 1970-01-01T00:00:02.500Z 1` + "\n",
		` {__name__="parts_sum", job="x"} 1970-01-01T00:01:59.000Z +Inf` + "\n", ` {__name__="stale_7", job="x"} 1970-01-01T00:00:07.000Z stale` + "\n",
		` {__name__="integers", job="x"} 1970-01-01T00:00:02.000Z {count:`, ` {__name__="custom", job="x"} 1970-01-01T00:00:02.000Z {count:`,
		` {__name__="floats", job="x"} 1970-01-01T00:00:02.000Z since 1970-01-01T00:00:01.999Z {count:`,
		` exemplars {__name__="plain", job="x"} 1970-01-01T00:00:05.000Z 7 {trace_id="5"}`, "\n00000002:",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("there is no %q", line)
		}
	}
	if t.Failed() {
		t.Log(text[:min(len(text), 5000)])
	}

	var v struct {
		Schema  int
		Records []dumped
		Stopped []Stop
	}
	if err := json.Unmarshal([]byte(dumpText(t, DumpOptions{Storage: dir, JSON: true})), &v); err != nil {
		t.Fatal(err)
	}
	if v.Schema != 1 || len(v.Records) != strings.Count(text, "\n") || len(v.Stopped) > 0 {
		t.Errorf("schema %d, %d records, %d lines of text, stopped %v", v.Schema, len(v.Records), strings.Count(text, "\n"), v.Stopped)
	}
}

// A dump by series and time has the samples that match, and nothing else.
func TestDumpFilters(t *testing.T) {
	l, dir := openTestLog(t)
	for i := range 120 {
		commitEveryKind(t, l, i)
	}
	for _, c := range []struct {
		series   string
		from, to int64 // seconds; 0: none
		lines    int
	}{
		{`{__name__="plain"}`, 5, 9, 2 * 4}, // a sample and an exemplar each
		{`plain{job="y"}`, 0, 0, 0},
		{`since{job="x"}`, 117, 0, 3},
		{"", 119, 0, 8},
		{"", 0, 1, 8},
	} {
		o := DumpOptions{Storage: dir, Series: c.series}
		if c.from > 0 {
			o.From = time.Unix(c.from, 0)
		}
		if c.to > 0 {
			o.To = time.Unix(c.to, 0)
		}
		if text := dumpText(t, o); strings.Count(text, "\n") != c.lines {
			t.Errorf("%+v:\n%s", c, text)
		}
	}
	text := dumpText(t, DumpOptions{Storage: dir, Series: `integers{job="x"}`})
	if n := strings.Count(text, "{count:"); n != 120 || strings.Contains(text, "plain") || strings.Contains(text, " commit ") {
		t.Errorf("%d histograms:\n%s", n, text)
	}
	if err := Dump(t.Context(), DumpOptions{Storage: dir, Series: "{"}, &bytes.Buffer{}); !errors.Is(err, ErrSelector) {
		t.Errorf("a bad selector: %v", err)
	}
	if err := Dump(t.Context(), DumpOptions{Storage: t.TempDir()}, &bytes.Buffer{}); !errors.Is(err, ErrNoLog) {
		t.Errorf("no log: %v", err)
	}
	if _, err := Verify(t.Context(), t.TempDir(), nil); !errors.Is(err, ErrNoLog) {
		t.Errorf("no log: %v", err)
	}
}

// Both readers find the same, beside the log that is written to, and in one that a kill left.
func TestVerifyAgrees(t *testing.T) {
	l, dir := openTestLog(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 1000 {
			commitEveryKind(t, l, i)
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if v, err := Verify(t.Context(), dir, nil); err != nil || !v.Agree {
			t.Fatalf("%v: %+v", err, v)
		}
	}
	for i := range 20 {
		commitEveryKind(t, l, 1_000_000+i)
	}
	head := l.Status().Head
	newest := filepath.Join(dir, "wal", fmt.Sprintf("%08d", head.Segment))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	v, err := Verify(t.Context(), dir, nil)
	if err != nil || v.Commits != 1020 || v.Samples+v.Histograms != head.Total || v.Exemplars != v.Commits || len(v.Stopped) > 0 || v.Missing > 0 {
		t.Errorf("%v: %+v; the head is %+v", err, v, head)
	}

	if err := os.Truncate(newest, head.Offset-3); err != nil { // as a power cut may leave it
		t.Fatal(err)
	}
	v, err = Verify(t.Context(), dir, nil)
	if err != nil || v.Commits != 1019 || len(v.Stopped) != 1 || !v.Stopped[0].Torn {
		t.Errorf("of a torn log: %v: %+v", err, v)
	}
	if text := dumpText(t, DumpOptions{Storage: dir}); !strings.Contains(text, "ends within a record") {
		t.Errorf("a dump does not say that the log is torn")
	}
}

// Prometheus' reader stops at damage, and hwsagent's goes on behind it: the first commit there
// is the difference.
func TestVerifyDamagedLog(t *testing.T) {
	l, dir := openTestLog(t)
	for i := range 120 {
		commitEveryKind(t, l, i)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "wal", "00000001")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := Verify(t.Context(), dir, nil)
	if d := v.Difference; !errors.Is(err, ErrDiffer) || v.Agree || d == nil || d.Segment != 1 || d.Offset == 0 || d.Hwsagent == d.Prometheus ||
		!strings.Contains(d.Prometheus, "00000001:") || len(v.Stopped) != 1 || v.Stopped[0].Torn {
		t.Errorf("%v: %+v %+v", err, v, d)
	}
	var text bytes.Buffer
	if err := v.WriteText(&text); err != nil || !strings.Contains(text.String(), "first difference at 00000001:") {
		t.Errorf("%v:\n%s", err, &text)
	}
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		err := Dump(t.Context(), DumpOptions{Storage: dir, JSON: asJSON}, &out)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(out.String(), "stale_19") || asJSON && !json.Valid(out.Bytes()) {
			t.Errorf("json=%v: %v\n%s", asJSON, err, &out)
		}
	}
}

// Anything that differs in one sample is found, and both readings of it are shown.
func TestFirstDifference(t *testing.T) {
	l, dir := openTestLog(t)
	commitEveryKind(t, l, 1)
	for name, change := range differences() {
		a, err := wal.OpenArchive(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		e, err := a.Next()
		if err != nil {
			t.Fatal(err)
		}
		s := stockEntry(t, dir, a.Head().Log)
		if d := difference(e, s); d != nil {
			t.Fatalf("without a change: %+v", d)
		}
		e.Samples, e.Histograms, e.Exemplars = slices.Clone(e.Samples), slices.Clone(e.Histograms), slices.Clone(e.Exemplars)
		change(e)
		if d := difference(e, s); d == nil || d.Hwsagent == d.Prometheus || d.Segment != 0 || d.Offset != s.Offset {
			t.Errorf("%s: %+v", name, d)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
