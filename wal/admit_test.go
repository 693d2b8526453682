package wal

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// TestAdmissionFollowsAModel: whichever batches are open, and whatever kinds of samples a series has, a sample is
// compared with the newest one of its batch, or else with the newest committed one.
func TestAdmissionFollowsAModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	l := openLog(t, Options{})
	type key struct{ t, v, kind int64 }
	type open struct {
		app  storage.AppenderV2
		mine map[string]key // newest sample of each series that the batch holds
	}
	last := map[string]key{}
	var batches []*open
	var repeated, clashed, late, committed int
	for step := range int64(20_000) {
		if len(batches) < 1+r.IntN(3) {
			batches = append(batches, &open{app: l.AppenderV2(t.Context()), mine: map[string]key{}})
		}
		i := r.IntN(len(batches))
		b := batches[i]
		if r.IntN(8) == 0 {
			batches = append(batches[:i], batches[i+1:]...)
			if r.IntN(3) == 0 {
				if err := b.app.Rollback(); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err := b.app.Commit(); err != nil {
				t.Fatal(err)
			}
			for name, k := range b.mine {
				if was, ok := last[name]; !ok || k.t > was.t {
					last[name] = k
					committed++
				}
			}
			continue
		}
		name := string(rune('a' + r.IntN(4)))
		k := key{t: step/100 + r.Int64N(30), v: r.Int64N(2), kind: r.Int64N(3)}
		var h *histogram.Histogram
		var fh *histogram.FloatHistogram
		switch k.kind {
		case 1:
			h = &histogram.Histogram{Count: uint64(k.v), ZeroCount: uint64(k.v)}
		case 2:
			fh = &histogram.FloatHistogram{Count: float64(k.v), ZeroCount: float64(k.v)}
		}
		strict := r.IntN(4) == 0
		_, err := b.app.Append(0, labels.FromStrings("__name__", name), 0, k.t, float64(k.v), h, fh, storage.AppendV2Options{RejectOutOfOrder: strict})
		newest, ok := b.mine[name]
		if !ok {
			newest, ok = last[name]
		}
		switch {
		case ok && k == newest:
			repeated++
			if err != nil {
				t.Fatalf("%s %+v again: %v", name, k, err)
			}
		case ok && k.t == newest.t:
			clashed++
			if !errors.Is(err, storage.ErrDuplicateSampleForTimestamp) {
				t.Fatalf("%s %+v after %+v: %v", name, k, newest, err)
			}
		case ok && k.t < newest.t && strict:
			late++
			if !errors.Is(err, storage.ErrOutOfOrderSample) {
				t.Fatalf("%s %+v after %+v: %v", name, k, newest, err)
			}
		case err != nil:
			t.Fatalf("%s %+v after %+v: %v", name, k, newest, err)
		case !ok || k.t > newest.t:
			b.mine[name] = k
		}
	}
	if repeated == 0 || clashed == 0 || late == 0 || committed < 100 {
		t.Errorf("%d repeated, %d clashed, %d late, %d committed: too few of one", repeated, clashed, late, committed)
	}
	if n := len(l.series.natives); n > 4 {
		t.Errorf("%d histograms are kept of 4 series", n)
	}
}
