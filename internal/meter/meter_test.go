package meter

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// every makes one metric of each kind and level, and sets them to v.
func every(s *Set, v float64) {
	for l, name := range map[Level]string{Shown: "shown", NotZero: "not_zero", Sent: "sent"} {
		s.Counter(l, name+"_c_total", "C.").Add(v)
		s.CounterVec(l, name+"_cv_total", "CV.", "a", "b").WithLabelValues("1", "2").Add(v)
		s.CounterFunc(l, name+"_cf_total", "CF.", func() float64 { return v })
		s.Gauge(l, name+"_g", "G.").Set(v)
		s.GaugeVec(l, name+"_gv", "GV.", "a").WithLabelValues("1").Set(v)
		s.GaugeFunc(l, name+"_gf", "GF.", func() float64 { return v })
		s.Histogram(l, name+"_h", "H.", prometheus.HistogramOpts{Buckets: []float64{1}}).Observe(v)
		s.SummaryVec(l, name+"_s", "S.", nil, "a").WithLabelValues("1").Observe(v)
	}
}

// TestSetMakesWhatItDescribes: name, kind, labels and help of what is gathered are as Metrics
// says, for each kind.
func TestSetMakesWhatItDescribes(t *testing.T) {
	reg, s := prometheus.NewPedanticRegistry(), NewSet("x_", "target", "t")
	every(s, 1)
	if err := s.Register(reg); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != 24 || len(s.Metrics()) != 24 {
		t.Fatalf("%d families, %d metrics, want 24", len(families), len(s.Metrics()))
	}
	for _, m := range s.Metrics() {
		i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == m.Name })
		if i < 0 {
			t.Errorf("%s is not gathered", m.Name)
			continue
		}
		f := families[i]
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		described := slices.Sorted(slices.Values(m.Labels))
		kind := map[dto.MetricType]Kind{dto.MetricType_COUNTER: Counter, dto.MetricType_GAUGE: Gauge, dto.MetricType_HISTOGRAM: Histogram, dto.MetricType_SUMMARY: Summary}[f.GetType()]
		if f.GetHelp() != m.Help || kind != m.Kind || !slices.Equal(labels, described) {
			t.Errorf("%+v is gathered as %v %q with %v", m, kind, f.GetHelp(), labels)
		}
	}
	s.Unregister(reg)
	if err := s.Register(reg); err != nil {
		t.Errorf("register once more: %v", err)
	}
}

// TestRegisterAllOrNothing: where one is refused, none stays.
func TestRegisterAllOrNothing(t *testing.T) {
	reg := prometheus.NewRegistry()
	first, second := NewSet(""), NewSet("")
	first.Counter(Sent, "b", "B.")
	second.Counter(Sent, "a", "A.")
	second.Counter(Sent, "b", "B.")
	if err := first.Register(reg); err != nil {
		t.Fatal(err)
	}
	err := second.Register(reg)
	if _, twice := errors.AsType[prometheus.AlreadyRegisteredError](err); !twice {
		t.Fatalf("registered b twice: %v", err)
	}
	first.Unregister(reg)
	if err := second.Register(reg); err != nil {
		t.Errorf("a stayed registered: %v", err)
	}
	if err := second.Register(nil); err != nil {
		t.Errorf("register nowhere: %v", err)
	}
	second.Unregister(nil)
}

// TestBrief: which families each level sends, with 0 and without.
func TestBrief(t *testing.T) {
	notZero := []string{"not_zero_h", "not_zero_s"} // have no 0
	values := []string{"not_zero_c_total", "not_zero_cf_total", "not_zero_cv_total", "not_zero_g", "not_zero_gf", "not_zero_gv"}
	sent := []string{"sent_c_total", "sent_cf_total", "sent_cv_total", "sent_g", "sent_gf", "sent_gv", "sent_h", "sent_s"}
	for v, want := range map[float64][]string{0: slices.Concat(notZero, sent), 1: slices.Concat(notZero, values, sent)} {
		reg, s := prometheus.NewRegistry(), NewSet("")
		every(s, v)
		other := prometheus.NewGauge(prometheus.GaugeOpts{Name: "other"})
		unknown := prometheus.NewGauge(prometheus.GaugeOpts{Name: "unknown"})
		reg.MustRegister(other, unknown)
		if err := s.Register(reg); err != nil {
			t.Fatal(err)
		}
		families, err := Brief(reg, s.Metrics(), "other").Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range families {
			got = append(got, f.GetName())
		}
		want = slices.Sorted(slices.Values(append(want, "other")))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("at %v:\ngot  %q\nwant %q", v, got, want)
		}
	}
}

// TestBriefKeepsErrors: what could be gathered comes with the error.
func TestBriefKeepsErrors(t *testing.T) {
	name, cause := "a", errors.New("half of it")
	from := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return []*dto.MetricFamily{{Name: &name}}, cause })
	families, err := Brief(from, nil, "a").Gather()
	if len(families) != 1 || !errors.Is(err, cause) {
		t.Errorf("%v, %v", families, err)
	}
}
