package hardware

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/storage"
	"go.uber.org/goleak"

	"hwsagent/agent/config"
	"hwsagent/probes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write puts a file into the test's directory.
func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProbeOnce(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "agent.yaml"),
		"probes: [{name: c, type: canary, series: 2, target: here, labels: {rack: b4}, metric_relabel_configs: [{regex: series, action: labeldrop, target_label: x}, {source_labels: [job], target_label: was}]}]\n", 0o600)
	var out bytes.Buffer
	_, err := ProbeOnce(t.Context(), file, "c", &out, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "labeldrop") {
		t.Fatalf("a faulty rule: %v", err)
	}
	file = write(t, file, "probes: [{name: c, type: canary, series: 2, target: here, labels: {rack: b4}, metric_relabel_configs: [{source_labels: [job], target_label: was}]}]\n", 0o600)
	r, err := ProbeOnce(t.Context(), file, "c", &out, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# TYPE hwsagent_canary ", `hwsagent_canary{instance="here",job="c",rack="b4",series="1",was="c"} `, `up{instance="here",job="c",rack="b4"} 1`, "scrape_duration_seconds{",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if r.State != "ok" || r.Samples != 2 || len(r.Series) != 4 {
		t.Errorf("result %+v, want two samples and the two of the report", r)
	}
	if _, err := ProbeOnce(t.Context(), file, "d", &out, slog.New(slog.DiscardHandler)); !errors.Is(err, config.ErrNoSuchProbe) {
		t.Errorf("another name: %v", err)
	}
}

// twice is a probe with two times of one series, and with series that relabelling makes one.
type twice struct{}

func (twice) Collect(_ context.Context, r *probes.Round) error {
	f := &probes.Family{Name: "a", Type: "gauge"}
	for t := range int64(2) {
		r.AddSample(probes.Sample{Family: f, Value: float64(t), T: 1 + t})
	}
	for v := range 2 {
		r.Add(&probes.Family{Name: "b"}, float64(v), "x", fmt.Sprint(v))
	}
	return nil
}

// TestCaptureIsLikeTheLog: a round for people has the samples and the errors of one in the agent.
func TestCaptureIsLikeTheLog(t *testing.T) {
	c := &capture{}
	rules := []*relabel.Config{{Regex: relabel.MustNewRegexp("x"), Action: relabel.LabelDrop}}
	st := probes.Once(t.Context(), probes.Spec{Name: "p", Probe: twice{}, Interval: time.Second, Timeout: time.Second, Relabel: rules}, c, slog.New(slog.DiscardHandler))
	if st.Samples != 3 || st.Refused != 1 || !strings.Contains(st.LastError, `{__name__="b"}: duplicate sample`) {
		t.Errorf("%+v", st)
	}
	var got []string
	for _, s := range c.samples[:3] {
		got = append(got, s.labels.String()+s.text())
	}
	if want := []string{`{__name__="a"}0`, `{__name__="a"}1`, `{__name__="b"}0`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Prometheus' own parser can read the output.
func TestExposition(t *testing.T) {
	c := &capture{}
	add := func(family string, typ model.MetricType, v float64, h *histogram.Histogram, ls ...string) {
		if _, err := c.Append(0, labels.FromStrings(ls...), 0, 0, v, h, nil, storage.AOptions{
			MetricFamilyName: family, Metadata: metadata.Metadata{Type: typ, Help: "a \\ and\na line"},
		}); err != nil {
			t.Fatal(err)
		}
	}
	add("a_total", model.MetricTypeCounter, 1.5, nil, "__name__", "a_total", "x", "quote \" slash \\ line \n end")
	add("b", model.MetricTypeGauge, math.Inf(1), nil, "__name__", "b")
	add("a_total", model.MetricTypeCounter, math.NaN(), nil, "__name__", "a_total", "x", "ü")
	add("h", model.MetricTypeHistogram, 0, &histogram.Histogram{Count: 3, Sum: 4}, "__name__", "h")
	add("with.dots", model.MetricTypeGauge, -1, nil, "__name__", "with.dots", "la.bel", "v")
	var out bytes.Buffer
	if err := c.write(&out); err != nil {
		t.Fatal(err)
	}
	var got []string
	p := textparse.NewPromParser(out.Bytes(), labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, out.String())
		}
		if entry == textparse.EntrySeries {
			var ls labels.Labels
			p.Labels(&ls)
			got = append(got, ls.String())
		}
	}
	want := []string{`{__name__="a_total", x="quote \" slash \\ line \n end"}`, `{__name__="a_total", x="ü"}`, `{__name__="b"}`, `{"__name__"="with.dots", "la.bel"="v"}`}
	for i := range want {
		if i >= len(got) || strings.ReplaceAll(got[i], `"__name__"`, "__name__") != strings.ReplaceAll(want[i], `"__name__"`, "__name__") {
			t.Errorf("series %d: got %v, want %s\n%s", i, got, want[i], out.String())
		}
	}
}
