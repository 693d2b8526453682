//go:build unix

package agent

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"hwsagent/agent/config"
	"hwsagent/agent/inputs"
	"hwsagent/agent/pull"
	"hwsagent/internal/panics"
	"hwsagent/probes"
	"hwsagent/probes/canary"
	"hwsagent/probes/devices"
	"hwsagent/probes/exec"
	"hwsagent/probes/host"
	"hwsagent/probes/self"
	"hwsagent/probes/snmp"
	"hwsagent/probes/textfile"
	"hwsagent/receivers"
	"hwsagent/receivers/otlp"
	"hwsagent/receivers/promtext"
	"hwsagent/receivers/pushgateway"
	"hwsagent/receivers/receivertest"
	remotewritein "hwsagent/receivers/remotewrite"
)

// minedLog panics in the step that is armed.
type minedLog struct {
	receivertest.Log
	armed atomic.Pointer[string]
	open  atomic.Int64 // batches that have not ended
}

// As for a log that knows no series yet.

func (*minedLog) Remember(time.Duration)              {}
func (*minedLog) Name(storage.SeriesRef) string       { return "" }
func (*minedLog) Ref(labels.Labels) storage.SeriesRef { return 0 }
func (*minedLog) Newest(storage.SeriesRef) (ls labels.Labels, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions, ok bool) {
	return ls, 0, 0, nil, nil, o, false
}

func (l *minedLog) arm(step string) { l.armed.Store(&step) }

func (l *minedLog) step(name string) {
	if armed := l.armed.Load(); armed != nil && *armed == name {
		panic("the mine went off")
	}
}

func (l *minedLog) AppenderV2(ctx context.Context) storage.AppenderV2 {
	l.step("begin")
	l.open.Add(1)
	return &minedBatch{l.Log.AppenderV2(ctx), l}
}

type minedBatch struct {
	storage.AppenderV2
	l *minedLog
}

func (b *minedBatch) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	b.l.step("append")
	return b.AppenderV2.Append(ref, ls, st, t, v, h, fh, o)
}

func (b *minedBatch) Commit() error {
	b.l.step("commit")
	b.l.open.Add(-1)
	return b.AppenderV2.Commit()
}

func (b *minedBatch) Rollback() error {
	b.l.open.Add(-1)
	return b.AppenderV2.Rollback()
}

// minedInput is one input before a log that may panic.
type minedInput struct {
	guard *panics.Guard
	// once brings something once. It returns the HTTP status, or 0 and what went wrong.
	once func() (status int, problem string)
}

// minedProbeOf runs rounds of a probe.
func minedProbeOf(t *testing.T, path *inputs.Path, name string, settings any) minedInput {
	c := &config.Probe{Name: name, Type: name, Settings: settings}
	c.Interval, c.Timeout = model.Duration(5*time.Second), model.Duration(5*time.Second)
	guard := path.Guard(inputProbe, name)
	return minedInput{guard, func() (int, string) {
		p, err := newProbe(c, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), guard, new(snmp.Plans), new(devices.Paces), "")
		if err != nil {
			t.Fatal(err)
		}
		s := c.Spec(p, "h")
		s.Guard, s.Out = guard, path.Input(inputProbe, name, inputs.Settings{})
		return 0, probes.Once(t.Context(), s, nil, slog.New(slog.DiscardHandler)).LastError
	}}
}

// minedReceiver serves one body.
func minedReceiver(t *testing.T, path *inputs.Path, name string, handler func(*receivers.Gate) http.Handler, request func() *http.Request) minedInput {
	guard := path.Guard(receiverKind, name)
	g := receivers.NewGate(receivers.GateOptions{
		Name: name, Limits: receivers.DefaultLimits(), Out: path.Input(receiverKind, name, inputs.Settings{}),
		Full: func(error) bool { return false }, Logger: slog.New(slog.DiscardHandler), Guard: guard,
	})
	h := handler(g)
	return minedInput{guard, func() (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request())
		if s := w.Header().Get("Grpc-Status"); s != "" {
			return map[string]int{"0": 200, "3": 400, "14": 503}[s], ""
		}
		return w.Code, ""
	}}
}

func posted(path, contentType string, body []byte) func() *http.Request {
	return func() *http.Request {
		r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		return r
	}
}

// otlpSum returns a request with one point of a sum.
func otlpSum(t *testing.T, kind pmetric.AggregationTemporality) []byte {
	t.Helper()
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("requests")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(kind)
	p := sum.DataPoints().AppendEmpty()
	p.SetIntValue(1)
	p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	b, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// minedInputs returns one of each kind of input.
func minedInputs(t *testing.T, path *inputs.Path) map[string]minedInput {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.prom"), "a 1\n", 0o600)
	now := time.Now().UnixMilli()
	written, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels: []prompb.Label{{Name: "__name__", Value: "w"}}, Samples: []prompb.Sample{{Value: 1, Timestamp: now}},
	}}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	cumulative, delta := otlpSum(t, pmetric.AggregationTemporalityCumulative), otlpSum(t, pmetric.AggregationTemporalityDelta)
	store, err := pushgateway.OpenStore(filepath.Join(dir, "pushed"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var pushed *pushgateway.Receiver
	v := otlp.New(otlp.Settings{}, 100)
	all := map[string]minedInput{
		"probe host":     minedProbeOf(t, path, "host", &host.Config{Collectors: []string{"loadavg"}}),
		"probe exec":     minedProbeOf(t, path, "exec", &exec.Config{Command: []string{"/bin/sh", "-c", "echo a 1"}}),
		"probe textfile": minedProbeOf(t, path, "textfile", &textfile.Config{Directory: dir}),
		"probe canary":   minedProbeOf(t, path, "canary", &canary.Config{Series: 1}),
		"probe self":     minedProbeOf(t, path, "self", &self.Config{}),
		"probe snmp":     minedProbeOf(t, path, "snmp", &snmp.Config{Target: "127.0.0.1:1", Auth: snmp.Auth{Version: 2, Community: "c"}, Modules: []string{"system"}}),
		"remote_write": minedReceiver(t, path, "remote_write", remotewritein.New,
			posted(remotewritein.Path, "application/x-protobuf", snappy.Encode(nil, written))),
		"import":           minedReceiver(t, path, "import", promtext.New, posted(promtext.Path, "text/plain", []byte("i 1\n"))),
		"otlp_http":        minedReceiver(t, path, "otlp_http", v.HTTP, posted(otlp.Path, "application/x-protobuf", cumulative)),
		"otlp_http deltas": minedReceiver(t, path, "otlp_deltas", v.HTTP, posted(otlp.Path, "application/x-protobuf", delta)),
		"otlp_grpc": minedReceiver(t, path, "otlp_grpc", v.GRPC, func() *http.Request {
			r := posted("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", "application/grpc",
				append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(cumulative))), cumulative...))()
			r.ProtoMajor = 2
			return r
		}),
		"pushgateway": minedReceiver(t, path, "pushgateway", func(g *receivers.Gate) http.Handler {
			pushed = pushgateway.New(g, store)
			return pushed
		}, posted("/metrics/job/j", "text/plain", []byte("p 1\n"))),
	}
	guard := path.Guard(receiverKind, "rounds")
	all["pushgateway's rounds"] = minedInput{guard, func() (int, string) {
		s := probes.Spec{Name: "rounds", Probe: pushedProbe{pushed}, Guard: guard, Out: path.Input(receiverKind, "rounds", inputs.Settings{}), Interval: time.Second, Timeout: time.Second}
		return 0, probes.Once(t.Context(), s, nil, slog.New(slog.DiscardHandler)).LastError
	}}
	return all
}

// A panic in the log's appender, at any step, costs each kind of input its round or its request. It
// holds no lock, place or batch; nothing is stored; and the next round or request is stored as ever.
func TestPanicInEachKindOfInput(t *testing.T) {
	for _, step := range []string{"begin", "append", "commit"} {
		l := &minedLog{}
		path := inputs.NewPath(l, slog.New(slog.DiscardHandler))
		for name, in := range minedInputs(t, path) {
			t.Run(name+"/"+step, func(t *testing.T) {
				l.arm(step)
				before, _ := l.Counts()
				for range receivers.DefaultLimits().Requests + 2 {
					status, problem := in.once()
					want := http.StatusBadRequest
					if step == "commit" {
						want = http.StatusServiceUnavailable // the log is at fault, not the request
					}
					if name == "pushgateway" && step == "commit" {
						want = http.StatusOK // it commits nothing: its groups are on disk, and appended by rounds
					}
					if status != 0 && status != want || status == 0 && !strings.Contains(problem, " panicked: a value of type string, at agent/panics_test.go:") {
						t.Fatalf("status %d, problem %q", status, problem)
					}
				}
				if n := in.guard.Count(); n < 6 && name != "pushgateway" {
					t.Errorf("%d panics are counted", n)
				}
				l.arm("")
				if after, _ := l.Counts(); after != before {
					t.Errorf("%d batches were committed", after-before)
				}
				if n := l.open.Load(); n != 0 {
					t.Errorf("%d batches are open", n)
				}
				status, problem := in.once()
				if status != 0 && status >= 300 || strings.Contains(problem, "panicked") {
					t.Errorf("afterwards: status %d, problem %q", status, problem)
				}
				if after, _ := l.Counts(); after == before && name != "pushgateway" {
					t.Error("afterwards nothing is committed")
				}
			})
		}
		if path.Size() == 0 { // takes the path's lock
			t.Error("the path knows no series")
		}
	}
}

// A panic while an answer is made for who scrapes the agent ends that answer only.
func TestPanicInPull(t *testing.T) {
	var armed atomic.Bool
	armed.Store(true)
	h := pull.New(pull.Options{Newest: func(all []inputs.Sample) []inputs.Sample {
		if armed.Load() {
			panic("the mine went off")
		}
		return all
	}})
	guard := panics.New(pullName, slog.New(slog.DiscardHandler))
	set := receivers.NewSet(slog.New(slog.DiscardHandler), time.Second)
	plan, err := set.Plan([]receivers.Spec{{
		Name: pullName, Listen: "127.0.0.1:0", Handler: h,
		Gate: receivers.NewGate(receivers.GateOptions{Name: pullName, Limits: receivers.DefaultLimits(), Logger: slog.New(slog.DiscardHandler), Guard: guard}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	set.Apply(plan)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); set.Run(ctx) }()
	defer func() { cancel(); <-done }()
	get := func() int {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}).Get("http://" + set.Status()[0].Address + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for range 10 { // more than may be written at once
		if code := get(); code != http.StatusInternalServerError {
			t.Fatalf("status %d", code)
		}
	}
	armed.Store(false)
	if code := get(); code != http.StatusOK || guard.Count() != 10 {
		t.Errorf("afterwards: %d, %d panics", code, guard.Count())
	}
}
