package exposition

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Content types, each of which chooses another parser.
const (
	typeText     = "text/plain; version=0.0.4"
	typeOpen     = "application/openmetrics-text; version=1.0.0"
	typeOpen2    = "application/openmetrics-text; version=2.0.0"
	typeProtobuf = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
)

// entry is one entry of a parser with everything that can be asked about it.
type entry struct {
	kind      textparse.Entry
	text      string
	labels    string
	value     string
	start     int64
	exemplars string
}

// read asks a parser for everything, in the order in which Prometheus' scraper does.
func read(p textparse.Parser, starts bool) (all []entry, err error) {
	for {
		kind, err := p.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return all, err
		}
		e := entry{kind: kind}
		switch kind {
		case textparse.EntryHelp:
			name, text := p.Help()
			e.text = fmt.Sprintf("%q %q", name, text)
		case textparse.EntryType:
			name, kind := p.Type()
			e.text = fmt.Sprintf("%q %s", name, kind)
		case textparse.EntryUnit:
			name, unit := p.Unit()
			e.text = fmt.Sprintf("%q %q", name, unit)
		case textparse.EntryComment:
			e.text = string(p.Comment())
		case textparse.EntrySeries, textparse.EntryHistogram:
			e.sample(p, starts)
		}
		all = append(all, e)
	}
}

func (e *entry) sample(p textparse.Parser, starts bool) {
	if e.kind == textparse.EntrySeries {
		raw, at, v := p.Series()
		e.text, e.value = string(raw), fmt.Sprint(v)
		if at != nil {
			e.value += fmt.Sprint(" @", *at)
		}
	} else {
		raw, at, h, fh := p.Histogram()
		e.text = string(raw)
		if h != nil {
			e.value = fmt.Sprintf("%+v", *h)
		} else {
			e.value = fmt.Sprintf("%+v", *fh)
		}
		if at != nil {
			e.value += fmt.Sprint(" @", *at)
		}
	}
	var ls labels.Labels
	p.Labels(&ls)
	e.labels = ls.String()
	for x := (exemplar.Exemplar{}); p.Exemplar(&x); x = (exemplar.Exemplar{}) {
		e.exemplars += fmt.Sprintf("%s %v %d %t; ", x.Labels, x.Value, x.Ts, x.HasTs)
	}
	if starts {
		e.start = p.StartTimestamp()
	}
}

// endless is a body for which the parser of OpenMetrics 1.0 in Prometheus 0.315 never returns.
const endless = "# TYPE a counter\na_total 1\na_total 2 # {a=7\n# EOF\n"

// within fails if f takes more CPU than that: a parser that never returns takes a whole core. How long it takes by the clock
// depends on what else the machine does.
func within(t *testing.T, most time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for began := cpuTime(); ; {
		select {
		case <-done:
			return
		case <-tick.C:
			if took := cpuTime() - began; took > most {
				t.Fatalf("it takes more than %s of CPU", most)
			}
		}
	}
}

// Most of these bodies end Prometheus' parser: it never returns, or it panics.
func TestHostileBodiesEndWithAnError(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	long := strings.Repeat("y", 17<<20)
	for _, tc := range []struct {
		name, contentType string
		body              []byte
	}{
		{"malformed exemplar after a counter", typeOpen, []byte(endless)},
		{"name shorter than its family's", typeOpen, []byte("# TYPE " + strings.Repeat("a", 100) + " counter\na 1\n")},
		{"name behind a label", typeOpen, []byte("# TYPE a counter\n{x=\"0123456789\",\"a_total\"} 1\n")},
		{"label of 17 MiB in text", typeText, []byte("ll{x=\"" + long + "\"} 1\n")},
		{"label of 17 MiB in OpenMetrics 1.0", typeOpen, []byte("ll{x=\"" + long + "\"} 1\n# EOF\n")},
		{"label of 17 MiB in OpenMetrics 2.0", typeOpen2, []byte("# TYPE ll summary\nll{x=\"" + long + "\"} {count:1,sum:1,quantile:[]}\n# EOF\n")},
		{"label name of 17 MiB", typeText, []byte("ll{" + long + "=\"x\"} 1\n")},
		{"name of 17 MiB", typeText, []byte(long + " 1\n")},
		{"quoted name of 17 MiB with line breaks", typeText, []byte("{\"" + strings.Repeat("y\n", 9<<20) + "\"} 1\n")},
		{"exemplar of 17 MiB in OpenMetrics 1.0", typeOpen, []byte("a 1 # {x=\"" + long + "\"} 1\n# EOF\n")},
		{"exemplar of 17 MiB in OpenMetrics 2.0", typeOpen2, []byte("a 1 # {x=\"" + long + "\"} 1 1\n# EOF\n")},
		{"help of 17 MiB", typeText, []byte("# HELP a " + long + "\n")},
		{"zero byte", typeText, []byte("a 1\n\x00b 1\n")},
		{"family cut off", typeProtobuf, []byte("\x05\x0a\x01a")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			within(t, 20*time.Second, func() {
				for _, convert := range []bool{false, true} {
					p, err := New(tc.body, tc.contentType, nil, textparse.ParserOptions{
						OpenMetricsSkipSTSeries: true, EnableOpenMetrics2: true, ConvertClassicHistogramsToNHCB: convert,
					})
					if p != nil {
						_, err = read(p, true)
					}
					if err == nil {
						t.Error("the body is taken")
						continue
					}
					if len(err.Error()) > 2*maxErrorBytes {
						t.Errorf("the error has %d bytes", len(err.Error()))
					}
				}
			})
		})
	}
}

// Families without metrics have no entries. Prometheus' parser calls itself for each of those that follow
// each other: the stack of the process overflows, which nothing can recover from.
func TestManyFamiliesWithoutMetrics(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	one := family(t, "a", 1, 1, "x")
	body := slices.Concat(one, make([]byte, 32<<20), one, make([]byte, 1000))
	within(t, 20*time.Second, func() {
		p, err := New(body, typeProtobuf, nil, textparse.ParserOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		if all, err := read(p, true); err != nil || len(all) != 12 {
			t.Errorf("%d entries, %v", len(all), err)
		}
	})
}

// What Next has returned as an error, it returns again.
func TestErrorsStay(t *testing.T) {
	p, err := New([]byte("a 1\nb\nc 1\n"), typeText, nil, textparse.ParserOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, first := read(p, true)
	_, again := p.Next()
	if first == nil || again.Error() != first.Error() {
		t.Errorf("%v, then %v", first, again)
	}
	if raw, _, _ := p.Series(); raw != nil || p.Exemplar(&exemplar.Exemplar{}) {
		t.Error("there is a sample after an error")
	}
}

// A label as long as the bounds allow is read, in each format.
func TestLongestLabelIsTaken(t *testing.T) {
	long := strings.Repeat("y", maxRecordBytes-100)
	for _, tc := range []struct{ contentType, body string }{
		{typeText, "ll{x=\"" + long + "\"} 1\n"},
		{typeOpen, "ll{x=\"" + long + "\"} 1\n# EOF\n"},
		{typeOpen2, "ll{x=\"" + long + "\"} 1\n# EOF\n"},
		{typeProtobuf, string(family(t, "ll", 1, 1, long))},
	} {
		p, err := New([]byte(tc.body), tc.contentType, nil, textparse.ParserOptions{EnableOpenMetrics2: true})
		if err != nil {
			t.Fatal(err)
		}
		all, err := read(p, true)
		if err != nil || len(all) == 0 || !strings.Contains(all[len(all)-1].labels, long) {
			t.Errorf("%s: %d entries, %v", tc.contentType, len(all), err)
		}
	}
}

// broken is a parser whose methods panic from a call on.
type broken struct {
	textparse.Parser
	method string
}

func (b broken) panics(method string) {
	if b.method == method {
		panic(method + strings.Repeat("!", 10_000))
	}
}

func (b broken) Next() (textparse.Entry, error) { b.panics("Next"); return textparse.EntrySeries, nil }
func (b broken) Series() ([]byte, *int64, float64) {
	b.panics("Series")
	return nil, nil, 0
}

func (b broken) Histogram() ([]byte, *int64, *histogram.Histogram, *histogram.FloatHistogram) {
	b.panics("Histogram")
	return nil, nil, &histogram.Histogram{}, nil
}
func (b broken) Help() ([]byte, []byte)           { b.panics("Help"); return nil, nil }
func (b broken) Type() ([]byte, model.MetricType) { b.panics("Type"); return nil, "" }
func (b broken) Unit() ([]byte, []byte)           { b.panics("Unit"); return nil, nil }
func (b broken) Comment() []byte                  { b.panics("Comment"); return nil }
func (b broken) Labels(*labels.Labels)            { b.panics("Labels") }
func (b broken) Exemplar(*exemplar.Exemplar) bool { b.panics("Exemplar"); return false }
func (b broken) StartTimestamp() int64            { b.panics("StartTimestamp"); return 0 }

// A panic in any method is an error of Next, which names it in few words.
func TestPanicsBecomeErrors(t *testing.T) {
	methods := map[string]func(p textparse.Parser){
		"Next":   func(textparse.Parser) {},
		"Series": func(p textparse.Parser) { p.Series() },
		"Histogram": func(p textparse.Parser) {
			if _, _, h, fh := p.Histogram(); h == nil && fh == nil {
				t.Error("there is no histogram")
			}
		},
		"Help": func(p textparse.Parser) { p.Help() }, "Type": func(p textparse.Parser) { p.Type() }, "Unit": func(p textparse.Parser) { p.Unit() },
		"Comment": func(p textparse.Parser) { p.Comment() }, "Labels": func(p textparse.Parser) { p.Labels(&labels.Labels{}) },
		"Exemplar": func(p textparse.Parser) { p.Exemplar(&exemplar.Exemplar{}) }, "StartTimestamp": func(p textparse.Parser) { p.StartTimestamp() },
	}
	for method, call := range methods {
		p := &guarded{p: broken{method: method}}
		_, _ = p.Next()
		call(p)
		_, err := p.Next()
		if err == nil || !strings.Contains(err.Error(), method+"!") || len(err.Error()) > 2*maxErrorBytes {
			t.Errorf("%s: %v", method, err)
		}
		for _, again := range methods {
			again(p) // which must not reach the parser
		}
	}
}

// The content type and the fallback choose as they do in Prometheus, with the same warnings.
func TestContentTypesAsInPrometheus(t *testing.T) {
	for _, contentType := range []string{"", "text/plain", typeText, typeOpen, typeOpen2, typeProtobuf, "application/openmetrics-text", "text/html", "a/b/c;;", "text/plain; charset"} {
		for _, fallback := range []string{"", "text/plain", "application/openmetrics-text", "application/vnd.google.protobuf", "x"} {
			for _, bits := range []int{0, 1, 2, 3} {
				o := textparse.ParserOptions{FallbackContentType: fallback, EnableOpenMetrics2: bits&1 != 0, ConvertClassicHistogramsToNHCB: bits&2 != 0}
				want, wantErr := textparse.New(nil, contentType, nil, o)
				got, err := New(nil, contentType, nil, o)
				if (got == nil) != (want == nil) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("%q, %+v: %v, %v; Prometheus %v, %v", contentType, o, got, err, want, wantErr)
					continue
				}
				if got == nil {
					continue
				}
				_, wantErr = want.Next()
				if _, err = got.Next(); fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("%q, %+v: another parser: %v; Prometheus %v", contentType, o, err, wantErr)
				}
			}
		}
	}
}
