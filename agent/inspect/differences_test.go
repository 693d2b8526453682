package inspect

import (
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"hwsagent/agent/inspect/stock"
	"hwsagent/wal"
)

// stockEntry returns the first commit of a log as Prometheus' reader finds it.
func stockEntry(t *testing.T, dir string, log wal.ID) *stock.Entry {
	t.Helper()
	r, err := stock.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	s, err := (&stock.Commits{Reader: r, Log: stock.ID(log)}).Next()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// differences are changes of a commit, each of which a comparison must find.
func differences() map[string]func(*wal.Entry) {
	series := func(change func(*wal.Series)) func(*wal.Series) *wal.Series {
		return func(s *wal.Series) *wal.Series {
			about := *s.About
			other := wal.NewSeries(s.Slot(), s.Labels(), &about)
			change(other)
			return other
		}
	}
	named := func(s *wal.Series) *wal.Series {
		return wal.NewSeries(s.Slot(), labels.FromStrings("__name__", "other"), s.About)
	}
	return map[string]func(*wal.Entry){
		"number":           func(e *wal.Entry) { e.End.Commit++ },
		"total":            func(e *wal.Entry) { e.End.Total++ },
		"a sample less":    func(e *wal.Entry) { e.Samples = e.Samples[1:] },
		"a histogram less": func(e *wal.Entry) { e.Histograms = e.Histograms[1:] },
		"an exemplar less": func(e *wal.Entry) { e.Exemplars = nil },
		"value":            func(e *wal.Entry) { e.Samples[1].V++ },
		"time":             func(e *wal.Entry) { e.Samples[1].T++ },
		"start":            func(e *wal.Entry) { e.Samples[1].ST++ },
		"labels":           func(e *wal.Entry) { e.Samples[1].Series = named(e.Samples[1].Series) },
		"help": func(e *wal.Entry) {
			e.Samples[0].Series = series(func(s *wal.Series) { s.About.Meta.Help = "x" })(e.Samples[0].Series)
		},
		"unit": func(e *wal.Entry) {
			e.Samples[0].Series = series(func(s *wal.Series) { s.About.Meta.Unit = "x" })(e.Samples[0].Series)
		},
		"type": func(e *wal.Entry) {
			e.Samples[0].Series = series(func(s *wal.Series) { s.About.Meta.Type = "x" })(e.Samples[0].Series)
		},
		"family": func(e *wal.Entry) {
			e.Samples[2].Series = series(func(s *wal.Series) { s.About.Family = "x" })(e.Samples[2].Series)
		},
		"histogram's time":   func(e *wal.Entry) { e.Histograms[0].T++ },
		"histogram's start":  func(e *wal.Entry) { e.Histograms[0].ST++ },
		"histogram's kind":   func(e *wal.Entry) { e.Histograms[0].FH, e.Histograms[0].H = e.Histograms[0].H.ToFloat(nil), nil },
		"histogram's series": func(e *wal.Entry) { e.Histograms[0].Series = named(e.Histograms[0].Series) },
		"histogram": func(e *wal.Entry) {
			h := e.Histograms[0].H.Copy()
			h.Count++
			e.Histograms[0].H = h
		},
		"exemplar's value":  func(e *wal.Entry) { e.Exemplars[0].V++ },
		"exemplar's time":   func(e *wal.Entry) { e.Exemplars[0].T++ },
		"exemplar's labels": func(e *wal.Entry) { e.Exemplars[0].Labels = labels.EmptyLabels() },
		"exemplar's series": func(e *wal.Entry) { e.Exemplars[0].Series = named(e.Exemplars[0].Series) },
	}
}
