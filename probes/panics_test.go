package probes

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"hwsagent/internal/panics"
)

// mine panics once, in the step that is armed.
type mine struct {
	armed atomic.Pointer[string]
	fired atomic.Int32
}

func (m *mine) arm(step string) { m.armed.Store(&step) }

func (m *mine) step(name string) {
	if armed := m.armed.Load(); armed != nil && *armed == name {
		m.armed.Store(nil)
		m.fired.Add(1)
		panic("the mine went off")
	}
}

// minedLog is a recorder whose steps may panic. It counts the batches that have not ended.
type minedLog struct {
	recorder
	*mine
	open int
}

func (l *minedLog) AppenderV2(ctx context.Context) storage.AppenderV2 {
	l.step("begin")
	l.open++
	return &minedBatch{l.recorder.AppenderV2(ctx), l}
}

type minedBatch struct {
	storage.AppenderV2
	l *minedLog
}

func (b *minedBatch) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, o storage.AOptions) (storage.SeriesRef, error) {
	if _, ls := b.l.find(ref, ls); ls.Get("__name__") == "up" {
		b.l.step("append up")
	} else if ls.Get("x") == "2" {
		b.l.step("append")
	}
	return b.AppenderV2.Append(ref, ls, st, t, v, h, fh, o)
}

func (b *minedBatch) Commit() error {
	b.l.step("commit")
	b.l.open--
	return b.AppenderV2.Commit()
}

func (b *minedBatch) Rollback() error {
	b.l.open--
	return b.AppenderV2.Rollback()
}

// minedProbe panics in its own steps.
type minedProbe struct {
	probeFunc
	*mine
}

func (p *minedProbe) Collect(ctx context.Context, r *Round) error {
	p.step("collect")
	return p.probeFunc.Collect(ctx, r)
}

func (p *minedProbe) Committed(err error) {
	p.step("committed")
	p.probeFunc.Committed(err)
}

func (p *minedProbe) Close() error {
	p.step("close")
	return p.probeFunc.Close()
}

// A panic in any step of a round costs that round: nothing of it is in the log but up, the
// rounds before and after are there, and so is every round of the other probe.
func TestPanicCostsTheRound(t *testing.T) {
	for _, tc := range []struct {
		step  string
		lost  bool // the samples of the round
		error bool // Committed was called with an error
	}{
		{"collect", true, true},
		{"begin", true, true},
		{"append", true, true},
		{"append up", true, true},
		{"commit", true, true},
		{"committed", false, false},
	} {
		t.Run(tc.step, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &mine{}
				out := &minedLog{mine: m}
				p := &minedProbe{mine: m}
				rounds := 0
				p.f = func(_ context.Context, _ int, r *Round) error {
					rounds++
					for _, x := range []string{"1", "2", "3"} {
						r.Add(famA, float64(rounds), "x", x)
					}
					return nil
				}
				s := spec("p", p)
				s.Out, s.Guard = out, panics.New("probe p", slog.New(slog.DiscardHandler))
				rec := &recorder{}
				r := NewRunner(rec, slog.New(slog.DiscardHandler))
				r.Apply([]Spec{s, spec("other", &probeFunc{f: func(_ context.Context, n int, r *Round) error { r.Add(famA, float64(n)); return nil }})})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- r.Run(ctx) }()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				m.arm(tc.step)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				st := r.Status()[0]
				if !strings.Contains(st.LastError, "probe p panicked: a value of type string") {
					t.Errorf("state %s, error %q", st.State, st.LastError)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if st := r.Status()[0]; st.State != "ok" || st.LastError != "" {
					t.Errorf("the round after it: %+v", st)
				}
				m.arm("close")
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if n := s.Guard.Count(); n != 2 || m.fired.Load() != 2 || out.open != 0 {
					t.Errorf("%d panics counted, %d fired, %d batches are open", n, m.fired.Load(), out.open)
				}
				if len(rec.commits) != 3 {
					t.Errorf("the other probe committed %d rounds", len(rec.commits))
				}
				checkRounds(t, out.commits, tc.lost)
				last := p.committed[len(p.committed)-1]
				if tc.step == "committed" && len(p.committed) != 2 || tc.error && (len(p.committed) != 3 || p.committed[1] == nil) || last != nil {
					t.Errorf("the probe was told %v", p.committed)
				}
			})
		})
	}
}

// checkRounds wants three rounds, the second of them without samples and with up 0 if it was
// lost.
func checkRounds(t *testing.T, commits [][]string, lost bool) {
	t.Helper()
	if len(commits) != 3 {
		t.Fatalf("%d commits: %v", len(commits), commits)
	}
	for i, lines := range commits {
		samples, up := 3, "1"
		if i == 1 && lost {
			samples, up = 0, "0"
		}
		values := slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
			return !strings.Contains(l, `__name__="a"`) || strings.HasSuffix(l, " stale")
		})
		if len(values) != samples || !slices.Contains(lines, fmt.Sprintf(`{__name__="up", instance="i", job="p"} %s`, up)) {
			t.Errorf("round %d holds %v", i+1, lines)
		}
	}
}

// A log that panics at every batch costs this probe all its rounds, and the loop goes on.
func TestPanicAtEveryRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spec("p", &probeFunc{f: func(_ context.Context, _ int, r *Round) error { r.Add(famA, 1); return nil }})
		s.Out, s.Guard = explosive{}, panics.New("probe p", slog.New(slog.DiscardHandler))
		r, _ := runFor(t, &recorder{}, 50*time.Second, s)
		if st := r.Status()[0]; st.State != "failing" || st.Failures != 5 || s.Guard.Count() != 10 { // the round, and the one in its place
			t.Errorf("%+v, %d panics", st, s.Guard.Count())
		}
		r.Apply(nil) // marks its series stale, which panics, too
		if s.Guard.Count() != 11 {
			t.Errorf("%d panics", s.Guard.Count())
		}
	})
}

type explosive struct{}

func (explosive) AppenderV2(context.Context) storage.AppenderV2 { panic("it explodes") }

// A probe that hangs and panics when it comes back costs its own rounds only.
func TestPanicAfterAHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probeFunc{f: func(_ context.Context, n int, r *Round) error {
			if n == 1 {
				time.Sleep(15 * time.Second)
				panic("late")
			}
			r.Add(famA, 1)
			return nil
		}}
		s := spec("p", p)
		s.Guard = panics.New("probe p", slog.New(slog.DiscardHandler))
		r, _ := runFor(t, &recorder{}, 50*time.Second, s)
		if st := r.Status()[0]; st.State != "ok" || s.Guard.Count() != 1 {
			t.Errorf("%+v, %d panics", st, s.Guard.Count())
		}
	})
}
