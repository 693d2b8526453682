package receiver

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
)

// arrivals are samples of one canary series; the timestamp is ten times the number.
func arrivals(numbers ...float64) prompb.TimeSeries {
	ts := oneSeries(CanaryName)
	for _, n := range numbers {
		ts.Samples = append(ts.Samples, prompb.Sample{Value: n, Timestamp: int64(n * 10)})
	}
	return ts
}

func TestOracle(t *testing.T) {
	stale := arrivals()
	stale.Samples = []prompb.Sample{{Value: math.Float64frombits(value.StaleNaN), Timestamp: 99}}
	sameTime := arrivals(1)
	sameTime.Samples = append(sameTime.Samples, prompb.Sample{Value: 2, Timestamp: 10})
	for _, tc := range []struct {
		name  string
		in    []prompb.TimeSeries
		acked []uint64
		want  Result
	}{
		{"nothing", nil, nil, Result{}},
		{"all", []prompb.TimeSeries{arrivals(1, 2), arrivals(3)}, []uint64{1, 2, 3}, Result{Appended: 3, Delivered: 3}},
		{"lost", []prompb.TimeSeries{arrivals(1, 3)}, []uint64{1, 2, 3, 4}, Result{Appended: 4, Delivered: 2, Missing: 2}},
		{"never acknowledged, yet delivered", []prompb.TimeSeries{arrivals(1, 2)}, []uint64{1}, Result{Appended: 1, Delivered: 1, Unacknowledged: 1}},
		{"never tried", []prompb.TimeSeries{arrivals(1, 100)}, []uint64{1}, Result{Appended: 1, Delivered: 1, Ghosts: 1}},
		{"never acknowledged, not delivered", []prompb.TimeSeries{arrivals(1, 3)}, []uint64{1, 3}, Result{Appended: 2, Delivered: 2}},
		{"resent", []prompb.TimeSeries{arrivals(1, 2, 3), arrivals(2, 3, 4)}, []uint64{1, 2, 3, 4}, Result{Appended: 4, Delivered: 4, Duplicated: 2}},
		{"out of order", []prompb.TimeSeries{arrivals(1, 3, 2, 4)}, []uint64{1, 2, 3, 4}, Result{Appended: 4, Delivered: 4, OutOfOrder: 1}},
		{"time stands still", []prompb.TimeSeries{sameTime}, []uint64{1, 2}, Result{Appended: 2, Delivered: 2, OutOfOrder: 1}},
		{"garbled", []prompb.TimeSeries{arrivals(1, 1.5, -3, math.NaN())}, []uint64{1}, Result{Appended: 1, Delivered: 1, Garbled: 3}},
		{"others and stale markers", []prompb.TimeSeries{oneSeries("up", prompb.Sample{Value: 1, Timestamp: 1}), stale, arrivals(1)}, []uint64{1}, Result{Appended: 1, Delivered: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := NewOracle()
			o.Add(tc.in)
			if diff := cmp.Diff(tc.want, o.Verify(Journal{Tried: 99, Acked: tc.acked}, 1)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOracleSeesASeriesThatNeverCame(t *testing.T) {
	o := NewOracle()
	o.Add([]prompb.TimeSeries{arrivals(1, 2)})
	want := Result{Appended: 4, Delivered: 2, Missing: 2}
	j := Journal{Tried: 2, Acked: []uint64{1, 2}}
	if diff := cmp.Diff(want, o.Verify(j, 2)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := o.Missing(j, 2); !cmp.Equal(got, j.Acked) {
		t.Errorf("missing are %v, want %v", got, j.Acked)
	}
	if got := o.Missing(j, 1); len(got) > 0 {
		t.Errorf("missing of the series that came are %v", got)
	}
}

func TestReadJournal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "journal")
	if j, err := ReadJournal(file); err != nil || len(j.Acked) != 0 {
		t.Errorf("a journal that does not exist: %+v, %v", j, err)
	}
	text := "\ntry 1\nack 1\ntry 2\ntry 23\nack 23\nack 2\n\ntry 24\nack 2"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := ReadJournal(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Journal{Tried: 24, Acked: []uint64{1, 23}}, j); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
