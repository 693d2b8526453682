package probes

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/spare"
)

// limited is a log that refuses the series of wild as an input does that has as many as it may.
type limited struct {
	discard
	taken *[]string
}

func (l limited) AppenderV2(context.Context) storage.AppenderV2 { return l }

func (l limited) Append(_ storage.SeriesRef, ls labels.Labels, _, _ int64, _ float64, _ *histogram.Histogram, _ *histogram.FloatHistogram, _ storage.AOptions) (storage.SeriesRef, error) {
	if ls.IsEmpty() {
		return 0, storage.ErrNotFound
	}
	if strings.HasPrefix(ls.Get("x"), "wild") {
		return 0, nil
	}
	*l.taken = append(*l.taken, ls.Get("__name__")+ls.Get("x"))
	return storage.SeriesRef(ls.Hash() | 1), nil
}

// Series that the input refuses, since it has as many as it may, are not remembered, and those that it takes
// are stored as ever.
func TestRefusedSeriesTakeNoMemory(t *testing.T) {
	var taken []string
	l := newLoop(spec("p", &probeFunc{}), limited{taken: &taken}, slog.New(slog.DiscardHandler), &spare.Stack[Round]{})
	for n := range 3 {
		round := NewRound(0)
		round.Add(famA, 1, "x", "tame")
		for i := range 100 {
			round.Add(famA, 1, "x", fmt.Sprint("wild", n, ".", i))
			round.Add(famA, 1, "x", fmt.Sprint("wild", i))
		}
		taken = nil
		l.finish(t.Context(), time.Now(), result{round: round})
		if l.tracker.series.Len() != 1 {
			t.Errorf("round %d: %d series are remembered, want the one that is taken", n, l.tracker.series.Len())
		}
		if l.tracker.byDigest != nil {
			t.Errorf("round %d: the positions of the series are still in memory", n)
		}
		if len(taken) == 0 || taken[0] != "atame" {
			t.Errorf("round %d: %q are taken", n, taken)
		}
	}
}
