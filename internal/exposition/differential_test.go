package exposition

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/prometheus/model/textparse"
)

// setup is a way in which a body can be read.
type setup struct {
	contentType string
	options     textparse.ParserOptions
	starts      bool // whether StartTimestamp is called
}

func (s setup) String() string {
	return fmt.Sprintf("%s convert=%t keep=%t units=%t ignore=%t skip=%t starts=%t", s.contentType, s.options.ConvertClassicHistogramsToNHCB,
		s.options.KeepClassicOnClassicAndNativeHistograms, s.options.EnableTypeAndUnitLabels, s.options.IgnoreNativeHistograms, s.options.OpenMetricsSkipSTSeries, s.starts)
}

// setups are all ways in which Prometheus' scraper can read a body: with start timestamps it skips
// the lines that they are in.
func setups() (all []setup) {
	for _, contentType := range []string{typeText, typeOpen, typeOpen2, typeProtobuf} {
		for bits := range 32 {
			on := func(bit int) bool { return bits&(1<<bit) != 0 }
			all = append(all, setup{contentType, textparse.ParserOptions{
				EnableOpenMetrics2: true, ConvertClassicHistogramsToNHCB: on(0), KeepClassicOnClassicAndNativeHistograms: on(1),
				EnableTypeAndUnitLabels: on(2), IgnoreNativeHistograms: on(3), OpenMetricsSkipSTSeries: on(4),
			}, on(4)})
		}
	}
	return all
}

// reference reads a body with Prometheus' own parser. It asks for start timestamps, as a conversion of
// histograms does by itself, only if the body is valid: for others the parser may never return. ok is false
// if it panics.
func reference(body []byte, s setup) (all []entry, err error, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	plain := s.options
	plain.OpenMetricsSkipSTSeries = s.options.OpenMetricsSkipSTSeries && !s.options.ConvertClassicHistogramsToNHCB
	p, err := textparse.New(bytes.Clone(body), s.contentType, nil, plain)
	if p == nil {
		return nil, err, true
	}
	if all, err = read(p, false); err != nil || !s.starts {
		return all, err, true
	}
	p, _ = textparse.New(bytes.Clone(body), s.contentType, nil, s.options)
	all, err = read(p, true)
	return all, err, true
}

var indent = regexp.MustCompile(`(?m)^[ \t]+`)

// compare reads a body with both parsers. It reports whether the body is valid.
func compare(t *testing.T, body []byte, s setup) (valid bool) {
	t.Helper()
	known := body // to Prometheus, which makes blanks before a line a part of the name
	if s.contentType == typeText && indent.Match(body) {
		for line := range bytes.Lines(body) {
			if bytes.Count(line, []byte{'"'})%2 != 0 {
				return false // perhaps a string of several lines
			}
		}
		known = indent.ReplaceAll(body, nil)
	}
	want, wantErr, ok := reference(known, s)
	if !ok {
		return false
	}
	var got []entry
	p, err := New(bytes.Clone(body), s.contentType, nil, s.options)
	if p != nil {
		got, err = read(p, s.starts && wantErr == nil)
	}
	if errors.Is(err, errMalformed) || errors.Is(err, ErrBound) {
		return false // such as the end of a group that has not begun, which Prometheus skips
	}
	if wantErr == nil && (err != nil) != (s.contentType != typeProtobuf && bytes.IndexByte(body, 0) >= 0) {
		t.Errorf("%s: error %v for the body\n%q", s, err, body)
	}
	if wantErr != nil && err == nil {
		t.Errorf("%s: no error, but Prometheus has %v for the body\n%q", s, wantErr, body)
	}
	if wantErr != nil || err != nil {
		if s.starts && s.options.ConvertClassicHistogramsToNHCB {
			return false // the reference was read in another way
		}
		want = want[:min(len(got), len(want))] // what is checked before is refused as a whole
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(entry{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-Prometheus +this parser):\n%s\nfor the body\n%q", s, d, body)
	}
	return wantErr == nil
}

// For each body of Prometheus' own tests, in each format and with each option, the parser
// gives the same as Prometheus' parser.
func TestSameAsPrometheus(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, which the race detector has nothing to say about")
	}
	valid, bodies := map[string]int{}, 0
	for _, of := range corpus(t) {
		for _, body := range of {
			bodies++
			for _, s := range setups() {
				if compare(t, body, s) {
					valid[s.contentType]++
				}
			}
		}
	}
	for _, body := range hostile() {
		for _, s := range setups() {
			compare(t, []byte(body), s)
		}
	}
	t.Logf("%d bodies; valid, times the options: %v", bodies, valid)
	for contentType, least := range map[string]int{typeText: 500, typeOpen: 1000, typeOpen2: 1000, typeProtobuf: 1000} {
		if valid[contentType] < least {
			t.Errorf("only %d bodies are valid as %s: the corpus is not read", valid[contentType], contentType)
		}
	}
}

// Start timestamps are the same as Prometheus' for valid bodies in which the lines that they are in
// come at any place, for some metrics and not for others.
func TestStartTimestampsSameAsPrometheus(t *testing.T) {
	r := random(t)
	known := 0
	bodies, least := 3000, 1000
	if testing.Short() { // one goroutine, which the race detector has nothing to say about
		bodies, least = bodies/10, least/10
	}
	for range bodies {
		body := randomStarts(r)
		for _, convert := range []bool{false, true} {
			for _, keep := range []bool{false, true} {
				s := setup{typeOpen, textparse.ParserOptions{OpenMetricsSkipSTSeries: true, ConvertClassicHistogramsToNHCB: convert, KeepClassicOnClassicAndNativeHistograms: keep}, true}
				if !compare(t, []byte(body), s) {
					t.Fatalf("not valid:\n%s", body)
				}
			}
		}
		all, _, _ := reference([]byte(body), setup{typeOpen, textparse.ParserOptions{OpenMetricsSkipSTSeries: true}, true})
		for _, e := range all {
			if e.start != 0 {
				known++
			}
		}
		if t.Failed() {
			return
		}
	}
	if known < least {
		t.Errorf("only %d samples have a start timestamp", known)
	}
}

// random is a source of randomness that HWSAGENT_SEED replays.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("HWSAGENT_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("HWSAGENT_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// randomStarts is a valid body of OpenMetrics 1.0.
func randomStarts(r *rand.Rand) string {
	var b strings.Builder
	names := []string{"a", "bb", "a_b", "long_name_of_a_family"}
	for _, name := range names[:1+r.IntN(len(names))] {
		kind := []string{"counter", "histogram", "summary", "gauge", "unknown"}[r.IntN(5)]
		fmt.Fprintf(&b, "# TYPE %s %s\n", name, kind)
		if r.IntN(4) == 0 {
			fmt.Fprintf(&b, "# HELP %s about _created\n", name)
		}
		for i := range r.IntN(4) {
			var lines []string
			sample := func(suffix, extra string) {
				labels := []string{fmt.Sprintf("x=\"%d\"", i), "y=\"\\\"{,}\""}[:r.IntN(3)]
				if extra != "" {
					labels = append(labels, extra)
				}
				line := name + suffix
				switch {
				case r.IntN(5) == 0:
					line = "{" + strings.Join(append([]string{"\"" + name + suffix + "\""}, labels...), ",") + "}"
				case len(labels) > 0:
					line += "{" + strings.Join(labels, ",") + "}"
				}
				lines = append(lines, fmt.Sprintf("%s %d", line, r.IntN(3)-r.IntN(2)*r.IntN(2)))
				if suffix == "_total" && r.IntN(3) == 0 {
					lines[len(lines)-1] += " # {t=\"#{\"} 1"
				}
			}
			for range 1 + r.IntN(2) {
				switch kind {
				case "counter":
					sample("_total", "")
				case "histogram":
					sample("_bucket", "le=\"1\"")
					sample("_bucket", "le=\"+Inf\"")
					sample("_count", "")
					sample("_sum", "")
				case "summary":
					sample("", "quantile=\"0.5\"")
					sample("_count", "")
				default:
					sample("", "")
				}
				if r.IntN(3) > 0 {
					sample("_created", "")
				}
			}
			if r.IntN(4) == 0 {
				r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
			}
			for _, line := range lines {
				b.WriteString(line + "\n")
			}
		}
	}
	b.WriteString("# EOF\n")
	return b.String()
}
