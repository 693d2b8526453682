package hardware

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// pagesOf returns the first pages of a target.
func pagesOf(seed uint64, number, size, n int) (pages []string) {
	t := NewTarget(seed, number, size)
	for range n {
		t.next()
		pages = append(pages, string(t.page))
	}
	return pages
}

func TestTargetIsTheSameForASeed(t *testing.T) {
	a, b, other, second := pagesOf(1, 0, 500, 20), pagesOf(1, 0, 500, 20), pagesOf(2, 0, 500, 20), pagesOf(1, 1, 500, 20)
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("page %d differs from one target to another with the same seed", i)
		}
	}
	if a[19] == other[19] {
		t.Error("another seed gives the same values")
	}
	if a[0] == second[0] {
		t.Error("another target shows the same series")
	}
}

func TestTargetShowsFortyFamiliesWithHardwareLabels(t *testing.T) {
	for _, size := range []int{500, 10_000} {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		found, err := parser.TextToMetricFamilies(strings.NewReader(pagesOf(1, 3, size, 1)[0]))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != families {
			t.Errorf("%d families, want %d", len(found), families)
		}
		seen := make(map[string]bool)
		for name, f := range found {
			for _, m := range f.GetMetric() {
				var text, names []string
				for _, l := range m.GetLabel() {
					names = append(names, l.GetName())
					text = append(text, l.GetValue())
				}
				if got := strings.Join(names, " "); got != "host id component sensor location" {
					t.Fatalf("%s has the labels %s", name, got)
				}
				seen[name+"\xff"+strings.Join(text, "\xff")] = true
			}
		}
		if len(seen) != size {
			t.Errorf("%d different series, want %d", len(seen), size)
		}
	}
}

// TestValuesMoveAsHardwareDoes counts over 200 scrapes how often the values of each kind
// change, and how far.
func TestValuesMoveAsHardwareDoes(t *testing.T) {
	const scrapes, size = 200, 4000
	tg := NewTarget(7, 0, size)
	var changed, all [4]float64
	for range scrapes {
		before := make([]float64, size)
		for i, s := range tg.series {
			before[i] = s.value
		}
		tg.next()
		for i, s := range tg.series {
			all[s.kind]++
			if s.value != before[i] {
				changed[s.kind]++
			}
			switch s.kind {
			case temperature:
				if s.value < s.rate-2 || s.value > s.rate+2 {
					t.Fatalf("a temperature about %v is %v", s.rate, s.value)
				}
			case fan:
				if s.value < 2000 {
					t.Fatalf("a fan turns %v times", s.value)
				}
			case counter:
				if s.value < before[i] {
					t.Fatalf("a counter fell from %v to %v", before[i], s.value)
				}
			case state:
				if s.value != 0 && s.value != 1 {
					t.Fatalf("a state is %v", s.value)
				}
			}
		}
	}
	for k, want := range [4][2]float64{temperature: {0.4, 0.5}, fan: {0.6, 0.8}, counter: {0.88, 0.92}, state: {0.0005, 0.002}} {
		if got := changed[k] / all[k]; got < want[0] || got > want[1] {
			t.Errorf("values of kind %d change in %.4f of all scrapes, want %v", k, got, want)
		}
	}
}

func TestTargetCountsWhatItServes(t *testing.T) {
	tg := NewTarget(1, 0, 500)
	if tg.first.Load() != 0 {
		t.Error("a target that has not been asked has a first scrape")
	}
	var last []byte
	for range 2 {
		w := httptest.NewRecorder()
		tg.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if bytes.Equal(w.Body.Bytes(), last) {
			t.Error("two scrapes show the same page")
		}
		last = w.Body.Bytes()
	}
	if got := tg.served.Load(); got != 1000 {
		t.Errorf("%d samples were served, want 1000", got)
	}
	if tg.first.Load() == 0 {
		t.Error("the first scrape was not noted")
	}
}
