package wal

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/record"
	"github.com/prometheus/prometheus/tsdb/wlog"

	"hwsagent/wal/internal/segment"
)

// openLog opens a log that is closed with the test.
func openLog(t testing.TB, o Options) *Log {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
		if err := os.Chmod(o.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// sampleOf is a float sample of series n: the value tells it from every other.
func sampleOf(n int) labels.Labels {
	return labels.FromStrings("__name__", fmt.Sprintf("metric_%d", n), "job", "test", "instance", "localhost")
}

// commitFloats commits one sample of each of series 0 to n-1.
func commitFloats(l *Log, n int, t int64, v float64) error {
	app := l.AppenderV2(context.Background())
	for i := range n {
		if _, err := app.Append(0, sampleOf(i), 0, t, v, nil, nil, storage.AppendV2Options{}); err != nil {
			return err
		}
	}
	return app.Commit()
}

// stockRead reads what the log holds with Prometheus' own reader and decoder, as
// "time=value" of each float sample in the order of the log, each commit once. Each
// sample must have been announced in its own segment.
func stockRead(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, segmentDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	files := make([][]byte, len(names))
	for i, name := range names {
		if files[i], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	var seen uint64
	for i, b := range files {
		if i+1 < len(files) {
			var c segment.Reader
			c.Reset(bytes.NewReader(files[i+1]), i+1, int64(len(files[i+1])), true)
			if what, _ := c.Next(); what == segment.FoundHeader && c.Header.PrevID != (ID{}) {
				b = b[:min(int64(len(b)), c.Header.PrevEnd)]
			}
		}
		r := wlog.NewReader(bytes.NewReader(b))
		dec := record.NewDecoder(labels.NewSymbolTable(), slog.New(slog.DiscardHandler))
		known := map[uint64]labels.Labels{}
		var batch []string
		for r.Next() {
			rec := slices.Clone(r.Record())
			switch dec.Type(rec) {
			case record.Series:
				series, err := dec.Series(rec, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range series {
					known[uint64(s.Ref)] = s.Labels
				}
			case record.SamplesV2:
				samples, err := dec.Samples(rec, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range samples {
					if known[uint64(s.Ref)].IsEmpty() {
						t.Fatalf("%s: sample of a series that is not announced in this segment", names[i])
					}
					batch = append(batch, fmt.Sprintf("%s %d=%g", known[uint64(s.Ref)].Get("__name__"), s.T, s.V))
				}
			}
			if rec[0] == segment.TypeCommit {
				c, err := segment.DecodeCommit(rec)
				if err != nil {
					t.Fatal(err)
				}
				if c.Number > seen {
					seen = c.Number
					out = append(out, batch...)
				}
				batch = nil
			}
		}
		if err := r.Err(); err != nil {
			t.Fatalf("%s: %v", names[i], err)
		}
	}
	return out
}

func TestStockReaderReadsWhatIsCommitted(t *testing.T) {
	for _, o := range []Options{{}, {Settings: Settings{Sync: SyncAlways}}, {SegmentBytes: 64 << 10}} {
		l := openLog(t, o)
		var want []string
		for c := range 200 {
			if err := commitFloats(l, 37, int64(c), float64(c)); err != nil {
				t.Fatal(err)
			}
			for i := range 37 {
				want = append(want, fmt.Sprintf("metric_%d %d=%d", i, c, c))
			}
		}
		dir := l.base.Path()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got := stockRead(t, dir); !slices.Equal(got, want) {
			t.Errorf("%+v: read %d samples, want %d", o, len(got), len(want))
		}
	}
}

func TestNumbersGoOnAfterReopen(t *testing.T) {
	l := openLog(t, Options{})
	dir := l.base.Path()
	for c := range 5 {
		for i := range 3 {
			if err := commitFloats(l, 2, int64(10*c+i), 1); err != nil {
				t.Fatal(err)
			}
		}
		head := l.head()
		if want := uint64(6 * (c + 1)); head.Total != want || head.Segment != c {
			t.Errorf("head = %+v, want total %d in segment %d", head, want, c)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = openLog(t, Options{Dir: dir})
		if got := l.head(); got != head {
			t.Errorf("head = %+v after reopen, want %+v", got, head)
		}
	}
}
