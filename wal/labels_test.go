package wal

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// Labels that a reader could not read are refused when they are appended: in the log
// they would cost the series that are announced after them. So are labels that would take much memory.
func TestRefusedLabels(t *testing.T) {
	raw := func(pairs ...string) labels.Labels {
		b := labels.NewScratchBuilder(len(pairs) / 2)
		for i := 0; i < len(pairs); i += 2 {
			b.Add(pairs[i], pairs[i+1])
		}
		return b.Labels() // as they come, not sorted
	}
	for name, bad := range map[string]labels.Labels{
		"not sorted":        raw("job", "a", "__name__", "x"),
		"twice, apart":      raw("a", "1", "b", "2", "a", "3"),
		"twice":             raw("a", "1", "a", "2"),
		"a name is empty":   raw("", "x", "__name__", "x"),
		"nothing but empty": raw("a", ""),
		"too long":          raw("__name__", "x", "a", strings.Repeat("y", 64<<10)),
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, Options{})
			r := openReader(t, l, "t", ReaderOptions{})
			app := l.AppenderV2(t.Context())
			if _, err := app.Append(0, bad, 0, 1, 1, nil, nil, storage.AppendV2Options{}); err == nil {
				t.Errorf("%.100s is taken", bad.String())
			}
			for n := range 3 {
				if _, err := app.Append(0, sampleOf(n), 0, 1, 1, nil, nil, storage.AppendV2Options{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
			if e := nextEntry(t, r); e.Count() != 3 || e.Missing.Sum() != 0 {
				t.Errorf("%d samples, missing %+v; want the 3 good ones", e.Count(), e.Missing)
			}
		})
	}
}
