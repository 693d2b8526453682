package wal

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// TestAdmissionFollowsAModel: whichever batches are open, and whatever kinds of samples a series has, a sample is
// compared with the newest one of its batch, or else with the newest committed one. A sample more than ten minutes ahead of
// the clock is the newest only of a series that has no other.
func TestAdmissionFollowsAModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	l := openLog(t, Options{Now: func() time.Time { return time.UnixMilli(0) }})
	type key struct{ t, v, kind int64 }
	beyond := func(k key) bool { return k.t > 600_000 }
	newer := func(k, other key) bool {
		if beyond(other) && !beyond(k) {
			return true
		}
		return k.t > other.t && (beyond(other) || !beyond(k))
	}
	type open struct {
		app  storage.AppenderV2
		mine map[string]key // newest sample of each series that the batch holds
	}
	last := map[string]key{}
	var batches []*open
	var repeated, clashed, late, committed, ahead, back int
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
				if was, ok := last[name]; !ok || newer(k, was) {
					last[name] = k
					committed++
				}
			}
			continue
		}
		name := string(rune('a'+r.IntN(4))) + strconv.FormatInt(step/200, 10) // new ones, as some begin ahead of the clock
		k := key{t: step/100 + r.Int64N(30), v: r.Int64N(2), kind: r.Int64N(3)}
		if r.IntN(20) == 0 {
			k.t += []int64{600_001, 1 << 40, math.MaxInt64 - 1000}[r.IntN(3)]
		}
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
		case ok && k.t < newest.t && strict && !newer(k, newest):
			late++
			if !errors.Is(err, storage.ErrOutOfOrderSample) {
				t.Fatalf("%s %+v after %+v: %v", name, k, newest, err)
			}
		case err != nil:
			t.Fatalf("%s %+v after %+v: %v", name, k, newest, err)
		case !ok || newer(k, newest):
			if b.mine[name] = k; ok && k.t < newest.t {
				back++
			}
		case beyond(k):
			ahead++
		}
	}
	if repeated == 0 || clashed == 0 || late == 0 || committed < 100 || ahead == 0 || back == 0 {
		t.Errorf("%d repeated, %d clashed, %d late, %d committed, %d ahead, %d back: too few of one", repeated, clashed, late, committed, ahead, back)
	}
	natives := 0
	for _, k := range last {
		if k.kind != 0 {
			natives++
		}
	}
	if n := len(l.series.natives); n != natives {
		t.Errorf("%d histograms are kept, want %d", n, natives)
	}
}
