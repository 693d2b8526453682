package probes

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"github.com/prometheus/prometheus/storage"
)

// picky is a storage that refuses the samples of some series.
type picky struct {
	recorder
	refuse string // in the labels
	fired  int
}

func (p *picky) AppenderV2(context.Context) storage.AppenderV2 {
	return &pickyBatch{batch{r: &p.recorder}, p}
}

type pickyBatch struct {
	batch
	p *picky
}

var errPicky = errors.New("refused")

func (b *pickyBatch) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	if b.p.refuse != "" && strings.Contains(ls.String(), b.p.refuse) {
		b.p.fired++
		return 0, errPicky
	}
	return b.batch.Append(ref, ls, st, t, v, h, fh, o)
}

// Committed gets nil exactly if every sample that the probe added is in the log.
func TestCommittedMeansEverySample(t *testing.T) {
	failed := errors.New("cannot read")
	add := func(r *Round) {
		r.Add(famA, 1, "x", "1")
		r.Add(famA, 2, "x", "2")
	}
	for _, c := range []struct {
		name    string
		collect func(r *Round) error
		refuse  string
		commit  error
		change  func(*Spec)
		want    error // nil: told nil; any other: told that, or something else if it is io.EOF
	}{
		{name: "all is well"},
		{name: "one is refused", refuse: `x="2"`, want: errPicky},
		{name: "up is refused", refuse: `"up"`},
		{name: "the commit fails", commit: io.ErrShortWrite, want: io.ErrShortWrite},
		{name: "nothing could be read", collect: func(*Round) error { return failed }, want: failed},
		{name: "a part could be read", collect: func(r *Round) error { add(r); return errors.Join(ErrPartial, failed) }, want: failed},
		{name: "too many", change: func(s *Spec) { s.MaxSamples = 1 }, want: io.EOF},
		{name: "one comes twice", collect: func(r *Round) error { add(r); add(r); return nil }, want: io.EOF},
		{name: "one is relabelled away", want: errRelabelled, change: func(s *Spec) {
			s.Relabel = []*relabel.Config{{Action: relabel.Drop, SourceLabels: model.LabelNames{"x"}, Regex: relabel.MustNewRegexp("2")}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &probeFunc{f: func(_ context.Context, _ int, r *Round) error {
					if c.collect != nil {
						return c.collect(r)
					}
					add(r)
					return nil
				}}
				s := spec("p", p)
				if c.change != nil {
					c.change(&s)
				}
				out := &picky{refuse: c.refuse}
				out.fail = c.commit
				r := NewRunner(out, slog.New(slog.DiscardHandler))
				r.Apply([]Spec{s})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error)
				go func() { done <- r.Run(ctx) }()
				time.Sleep(10 * time.Second) // of the bubble: one round
				synctest.Wait()
				cancel()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if len(p.committed) != 1 {
					t.Fatalf("told %d times", len(p.committed))
				}
				got := p.committed[0]
				if c.want == nil && got != nil || c.want != nil && got == nil || c.want != nil && !errors.Is(c.want, io.EOF) && !errors.Is(got, c.want) {
					t.Errorf("told %v, want %v", got, c.want)
				}
				if c.refuse != "" && out.fired == 0 {
					t.Error("nothing was refused")
				}
			})
		})
	}
}

// A single round for people is not in the log.
func TestOnceTellsNothing(t *testing.T) {
	p := &probeFunc{f: func(_ context.Context, _ int, r *Round) error { r.Add(famA, 1); return nil }}
	if st := Once(t.Context(), spec("p", p), &recorder{}, slog.New(slog.DiscardHandler)); st.State != "ok" || st.Samples != 1 {
		t.Errorf("%+v", st)
	}
	if len(p.committed) > 0 || p.closed != 1 {
		t.Errorf("told %v, closed %d times", p.committed, p.closed)
	}
}
