package wal

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/storage"
)

// When a series loses its type, or its family becomes its own name, readers learn it with that commit, not with the next segment.
func TestMetadataThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, memOptions(t, newMemDir(), newMemDir()))
		r := openReader(t, l, "a", ReaderOptions{})
		commit := func(ts int64, o storage.AppendV2Options) *Entry {
			app := l.AppenderV2(context.Background())
			if _, err := app.Append(0, sampleOf(1), 0, ts, 1, nil, nil, o); err != nil {
				t.Fatal(err)
			}
			if err := app.Commit(); err != nil {
				t.Fatal(err)
			}
			return nextEntry(t, r)
		}
		commit(1, storage.AppendV2Options{MetricFamilyName: "fam", Metadata: metadata.Metadata{Type: "counter", Help: "h"}})
		e := commit(2, storage.AppendV2Options{MetricFamilyName: "metric_1"})
		s := e.Samples[0].Series
		if s.Family() == "fam" || !s.Meta().IsEmpty() {
			t.Errorf("the log says family %q, metadata %+v, after an input that said metric_1 and none", s.Family(), s.Meta())
		}
		_ = r.Close()
		_ = l.Close()
	})
}
