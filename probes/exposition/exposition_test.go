package exposition

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"hwsagent/internal/exposition"
	"hwsagent/probes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines returns the samples of a round as text.
func lines(r *probes.Round) []string {
	var all []string
	for _, s := range r.Samples() {
		name := s.Name
		if name == "" {
			name = s.Family.Name
		}
		all = append(all, fmt.Sprintf("%s|%s|%s|%q %v @%d st=%d ex=%d", s.Family.Name, s.Family.Type, name, s.Labels, s.Value, s.T, s.ST, len(s.Exemplars)))
	}
	return all
}

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		name, contentType, text string
		want                    []string
	}{
		{"text", "text/plain; version=0.0.4", `# HELP raid_state State of the array.
# TYPE raid_state gauge
raid_state{array="md0"} 1
raid_state{array="md1"} 0 1790000000000
lonely 7
# TYPE io_seconds histogram
io_seconds_bucket{le="0.1"} 1
io_seconds_bucket{le="+Inf"} 2
io_seconds_sum 0.3
io_seconds_count 2
# TYPE reads_total counter
reads_total 9
`, []string{
			`raid_state|gauge|raid_state|["array" "md0"] 1 @0 st=0 ex=0`,
			`raid_state|gauge|raid_state|["array" "md1"] 0 @1790000000000 st=0 ex=0`,
			`lonely|unknown|lonely|[] 7 @0 st=0 ex=0`,
			`io_seconds|histogram|io_seconds_bucket|["le" "0.1"] 1 @0 st=0 ex=0`,
			`io_seconds|histogram|io_seconds_bucket|["le" "+Inf"] 2 @0 st=0 ex=0`,
			`io_seconds|histogram|io_seconds_sum|[] 0.3 @0 st=0 ex=0`,
			`io_seconds|histogram|io_seconds_count|[] 2 @0 st=0 ex=0`,
			`reads_total|counter|reads_total|[] 9 @0 st=0 ex=0`,
		}},
		{"openmetrics", "application/openmetrics-text; version=1.0.0", `# TYPE writes counter
writes_total{disk="a"} 3 # {trace_id="x"} 1
writes_created{disk="a"} 1790000000
# EOF
`, []string{`writes|counter|writes_total|["disk" "a"] 3 @0 st=1790000000000 ex=1`}},
		{"empty", "", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := probes.NewRound(0)
			if err := Parse(t.Context(), []byte(tc.text), Options{ContentType: tc.contentType}, r); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, lines(r)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// A text that is wrong in one place adds nothing, and what was there stays.
func TestParseIsAllOrNothing(t *testing.T) {
	for name, text := range map[string]string{
		"no value":     "good 1\nbad\n",
		"binary":       "good 1\n\x00\xff\xfe\n",
		"long series":  "good 1\nx{a=\"" + strings.Repeat("v", maxSeriesBytes) + "\"} 1\n",
		"many labels":  "good 1\nx{" + strings.Repeat(`l="v",`, 0) + manyLabels(maxLabels+1) + "} 1\n",
		"cut":          "good 1\nx{a=\"b",
		"not a number": "good 1\nx one\n",
	} {
		r := probes.NewRound(0)
		r.Add(&probes.Family{Name: "before"}, 1)
		if err := Parse(t.Context(), []byte(text), Options{}, r); err == nil || len(r.Samples()) != 1 {
			t.Errorf("%s: %v, %d samples", name, err, len(r.Samples()))
		}
	}
	r := probes.NewRound(0)
	if err := Parse(t.Context(), []byte("a 1\n"), Options{ContentType: exposition.OpenMetrics}, r); err == nil {
		t.Error("OpenMetrics without its end is taken")
	}
	if err := Parse(t.Context(), []byte("a 1 1790000000000\n"), Options{NoTimestamps: true}, r); !errors.Is(err, ErrTimestamp) {
		t.Errorf("a timestamp: %v", err)
	}
	if err := Parse(t.Context(), nil, Options{ContentType: "application/vnd.google.protobuf; encoding=delimited"}, r); err == nil {
		t.Error("protobuf is taken")
	}
}

// A text that once made the parser loop for ever is refused.
func TestEndlessTextIsRefused(t *testing.T) {
	r, done := probes.NewRound(0), make(chan error)
	go func() {
		done <- Parse(t.Context(), []byte("# TYPE a counter\na_total 1\na_total 2 # {a=7\n# EOF\n"), Options{ContentType: exposition.OpenMetrics}, r)
	}()
	select {
	case err := <-done:
		if err == nil || len(r.Samples()) > 0 {
			t.Errorf("%v, %d samples", err, len(r.Samples()))
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it never returns")
	}
}

// When the time of a round is over, the reading stops and adds nothing.
func TestParseStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := probes.NewRound(0)
	if err := Parse(ctx, []byte(strings.Repeat("x 1\n", 100_000)), Options{}, r); !errors.Is(err, context.Canceled) || len(r.Samples()) > 0 {
		t.Errorf("%v, %d samples", err, len(r.Samples()))
	}
}

// Help that is cut stays UTF-8, and an exemplar that a TSDB of Prometheus would not take is left out.
func TestParseCutsHelpAndExemplars(t *testing.T) {
	r := probes.NewRound(0)
	text := "# HELP a x" + strings.Repeat("é", maxHelpBytes) + "\n# TYPE a counter\na_total 1 # {t=\"" + strings.Repeat("é", 128) + "\"} 1\n# EOF\n"
	if err := Parse(t.Context(), []byte(text), Options{ContentType: exposition.OpenMetrics}, r); err != nil {
		t.Fatal(err)
	}
	s := r.Samples()[0]
	if help := s.Family.Help; !utf8.ValidString(help) || len(help) != maxHelpBytes-1 || len(s.Exemplars) != 0 {
		t.Errorf("%d bytes of help, %d exemplars", len(help), len(s.Exemplars))
	}
}

func manyLabels(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`l%d="v"`, i))
	}
	return strings.Join(all, ",")
}

// A text with more samples than the round may have costs no more than those.
func TestParseStopsAtTheLimit(t *testing.T) {
	r := probes.NewRound(10)
	if err := Parse(t.Context(), []byte(strings.Repeat("x 1\n", 100_000)), Options{}, r); err != nil {
		t.Fatal(err)
	}
	if len(r.Samples()) != 10 || r.Over() != 1 {
		t.Errorf("%d samples, %d over", len(r.Samples()), r.Over())
	}
}

func FuzzParse(f *testing.F) {
	f.Add("# TYPE a counter\na_total{b=\"c\"} 1 5\n", false, false)
	f.Add("# HELP a b\n# TYPE a histogram\na_bucket{le=\"1\"} 1 # {x=\"y\"} 1\n# EOF\n", true, false)
	f.Add("{\"a.b\",c=\"d\"} NaN\n", false, true)
	f.Fuzz(func(t *testing.T, text string, open, bare bool) {
		o := Options{NoTimestamps: bare}
		if open {
			o.ContentType = exposition.OpenMetrics
		}
		r := probes.NewRound(50)
		err := Parse(t.Context(), []byte(text), o, r)
		if err != nil && len(r.Samples()) > 0 {
			t.Fatal("samples of a text that was refused")
		}
		for _, s := range r.Samples() {
			if s.Family == nil || len(s.Labels)%2 != 0 || len(s.Labels) > 2*maxLabels || bare && s.T != 0 {
				t.Fatalf("%+v", s)
			}
		}
	})
}
