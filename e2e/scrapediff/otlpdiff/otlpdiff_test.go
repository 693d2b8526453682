package otlpdiff

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	theirs "github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"go.opentelemetry.io/collector/pdata/pmetric"

	ours "hwsagent/receivers/otlp/translation"
)

// recorder writes down what is appended.
type recorder struct {
	lines                                 []string
	series                                []string // of each line
	ends                                  []bool   // the line is a stale marker
	plain, exemplars, native, info, stale int      // plain: floats
}

func (r *recorder) Append(_ storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	r.lines = append(r.lines, fmt.Sprintf("%s st=%d t=%d v=%x h=%#v %v fh=%v meta=%+v family=%s exemplars=%d %+v", ls, st, t, v, h, h, fh, o.Metadata, o.MetricFamilyName, len(o.Exemplars), o.Exemplars))
	r.series, r.ends = append(r.series, ls.String()), append(r.ends, h == nil && value.IsStaleNaN(v))
	r.exemplars += len(o.Exemplars)
	switch {
	case h != nil:
		r.native++
	case o.MetricFamilyName == "target_info":
		r.info++
	case v != v:
		r.stale++
	default:
		r.plain++
	}
	return 0, nil
}

func (*recorder) Commit() error   { return nil }
func (*recorder) Rollback() error { return nil }

// settings returns the same settings for both.
func settings(r *rand.Rand) (ours.Settings, theirs.Settings) {
	is := func() bool { return r.IntN(2) == 0 }
	some := func() (names []string) {
		for range r.IntN(4) {
			names = append(names, keys()[r.IntN(len(keys()))])
		}
		return names
	}
	o := ours.Settings{
		Suffixes: is(), AllowUTF8: is(), KeepIdentifying: is(), CustomBuckets: is(), ScopeLabels: is(), SanitizeUnderscores: is(), KeepUnderscores: is(),
		Promote: some(), PromoteAll: is(), Ignore: some(),
	}
	return o, theirs.Settings{
		AddMetricSuffixes: o.Suffixes, AllowUTF8: o.AllowUTF8, KeepIdentifyingResourceAttributes: o.KeepIdentifying, ConvertHistogramsToNHCB: o.CustomBuckets,
		PromoteScopeMetadata: o.ScopeLabels, LabelNameUnderscoreSanitization: o.SanitizeUnderscores, LabelNamePreserveMultipleUnderscores: o.KeepUnderscores,
		LookbackDelta: 5 * time.Minute,
		PromoteResourceAttributes: theirs.NewPromoteResourceAttributes(config.OTLPConfig{
			PromoteResourceAttributes: o.Promote, PromoteAllResourceAttributes: o.PromoteAll, IgnoreResourceAttributes: o.Ignore,
		}),
	}
}

// withoutEnds returns our lines without those of one intended difference. A point without a value that has no quantiles or
// bounds ends all series of the point before it here, and only sum and count in Prometheus. So the result has not: stale
// markers that Prometheus does not have at their place, of a series with a sample earlier in the request. want are the lines of Prometheus.
func (r *recorder) withoutEnds(want []string) (lines []string) {
	begun := map[string]bool{}
	for i, line := range r.lines {
		extra := r.ends[i] && begun[r.series[i]] && (len(lines) >= len(want) || want[len(lines)] != line)
		if !extra {
			lines = append(lines, line)
		}
		begun[r.series[i]] = !r.ends[i]
	}
	return lines
}

// same says where the two differ, and counts into seen what they agree on. refused is whether both refuse.
func same(t *testing.T, md pmetric.Metrics, o ours.Settings, s theirs.Settings, seen *recorder) (refused bool) {
	t.Helper()
	var a, b recorder
	errOurs := ours.Translate(context.Background(), md, o, ours.NewOpen(), &a)
	_, errTheirs := theirs.NewPrometheusConverter(&b).FromMetrics(context.Background(), md, s)
	if errOurs == nil && errTheirs != nil && strings.Contains(errTheirs.Error(), "label name") {
		return true // an attribute whose key gives no name of a label costs itself here, and the request there
	}
	if (errOurs == nil) != (errTheirs == nil) {
		t.Fatalf("settings %+v: our error is %v, Prometheus' is %v", o, errOurs, errTheirs)
	}
	if errOurs != nil {
		return true // what was appended is not stored
	}
	if diff := cmp.Diff(b.lines, a.withoutEnds(b.lines)); diff != "" {
		t.Fatalf("settings %+v: Prometheus' samples (-) and ours (+):\n%s", o, diff)
	}
	seen.plain, seen.exemplars, seen.native = seen.plain+a.plain, seen.exemplars+a.exemplars, seen.native+a.native
	seen.info, seen.stale = seen.info+a.info, seen.stale+a.stale
	return false
}

// rounds is how many requests are compared.
const rounds = 5_000

// TestSameAsPrometheus: both translations give the same output for metrics, or both refuse them.
func TestSameAsPrometheus(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("HWSAGENT_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("HWSAGENT_SEED=%d", seed)
	log.SetOutput(io.Discard) // Prometheus' translation tells of labels that it overwrites
	r := rand.New(rand.NewPCG(seed, 0))
	var seen recorder
	refusals := 0
	for range rounds {
		o, s := settings(r)
		if same(t, metrics(r), o, s, &seen) {
			refusals++
		}
	}
	t.Logf("of %d requests %d are refused; the others have %+v", rounds, refusals, seen)
	if refusals == 0 || refusals > rounds/2 || seen.plain == 0 || seen.exemplars == 0 || seen.native == 0 || seen.info == 0 || seen.stale == 0 {
		t.Error("not every kind of sample was compared")
	}
}
