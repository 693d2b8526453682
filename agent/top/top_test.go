package top

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"hwsagent/agent/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// screen is a terminal that keeps what is written to it.
type screen struct {
	mu            sync.Mutex
	text          strings.Builder
	columns, rows int
	broken        error
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return 0, s.broken
	}
	return s.text.Write(p)
}

func (s *screen) size() (int, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.columns, s.rows
}

// shown returns what was written since the last call.
func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.text.Reset()
	return s.text.String()
}

func saying(text string) status.Status {
	return status.Status{Schema: 1, Running: true, Now: time.Now(), Verdict: &status.Verdict{Level: status.LevelOK, Text: text}}
}

// TestRun: the screen is drawn when there is something new or its size changes, tells an agent that does not answer, and ends by
// a key, a signal, or a terminal that has gone.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{columns: 80, rows: 24}
		keys := make(chan byte)
		answers := []fetched{{saying("first"), nil}, {saying("second"), nil}, {status.Status{}, errors.New("no answer")}}
		n := 0
		fetch := func(context.Context) (status.Status, error) {
			a := answers[min(n, len(answers)-1)]
			n++
			return a.status, a.err
		}
		done := make(chan error)
		go func() {
			done <- Run(t.Context(), Terminal{Out: s, Size: s.size, Keys: keys}, fetch, time.Second)
		}()
		time.Sleep(100 * time.Millisecond)
		if got := s.shown(); !strings.HasPrefix(got, enter+home+"✓ first") || strings.Count(got, endOfLine) != 23 {
			t.Errorf("at first %q", got)
		}
		time.Sleep(500 * time.Millisecond)
		if got := s.shown(); got != "" {
			t.Errorf("drawn without a reason: %q", got)
		}
		s.mu.Lock()
		s.columns, s.rows = 60, 10
		s.mu.Unlock()
		time.Sleep(lookAtSize + time.Millisecond) // past the tick, not beside it
		if got := s.shown(); !strings.HasPrefix(got, home+"✓ first") || strings.Count(got, endOfLine) != 9 {
			t.Errorf("after a change of size %q", got)
		}
		keys <- 'x'
		time.Sleep(time.Second)
		if got := s.shown(); !strings.Contains(got, "✓ second") {
			t.Errorf("a second later %q", got)
		}
		time.Sleep(time.Second)
		if got := s.shown(); !strings.HasPrefix(got, home+"no answer") || !strings.Contains(got, "status as of ") || !strings.Contains(got, "✓ second") || strings.Count(got, endOfLine) != 9 {
			t.Errorf("without an answer %q", got)
		}
		keys <- 'q'
		if err := <-done; err != nil || !strings.HasSuffix(s.shown(), leave) {
			t.Errorf("q: %v", err)
		}
	})
}

// TestScroll: keys scroll the lines below the verdict, no further than they go, and what is new comes at the same place.
func TestScroll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{columns: 80, rows: 24}
		keys := make(chan byte)
		fetch := func(context.Context) (status.Status, error) { return busy(50, 0), nil }
		done := make(chan error)
		go func() {
			done <- Run(t.Context(), Terminal{Out: s, Size: s.size, Keys: keys}, fetch, time.Second)
		}()
		time.Sleep(100 * time.Millisecond)
		for _, c := range []struct{ typed, want string }{
			{"", "lines 1–19 of 55"}, {"\x1b[B", "lines 2–20 of"}, {"\x1b[6~", "lines 18–36 of"}, {"G", "lines 37–55 of"}, {"j", "lines 37–55 of"}, {"k", "lines 36–54 of"}, {"g", "lines 1–19 of"}, {"k", "lines 1–19 of"},
		} {
			for _, b := range []byte(c.typed) {
				keys <- b
			}
			time.Sleep(time.Second)
			got := s.shown()
			if last := got[strings.LastIndex(got, home):]; !strings.Contains(last, c.want) {
				t.Errorf("after %q the screen does not show %q:\n%s", c.typed, c.want, last)
			}
		}
		keys <- 'q'
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetch := func(ctx context.Context) (status.Status, error) { <-ctx.Done(); return status.Status{}, ctx.Err() } // hangs
		for name, end := range map[string]func(cancel func(), keys chan byte){
			"Ctrl-C":   func(_ func(), keys chan byte) { keys <- interrupt },
			"a signal": func(cancel func(), _ chan byte) { cancel() },
			"no input, and then a signal": func(cancel func(), keys chan byte) {
				close(keys)
				time.Sleep(time.Second)
				cancel()
			},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			keys := make(chan byte)
			done := make(chan error)
			s := &screen{columns: 80, rows: 24}
			go func() { done <- Run(ctx, Terminal{Out: s, Size: s.size, Keys: keys}, fetch, time.Second) }()
			time.Sleep(time.Second)
			end(cancel, keys)
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
		s := &screen{columns: 80, rows: 24, broken: errors.New("gone")}
		if err := Run(t.Context(), Terminal{Out: s, Size: s.size}, fetch, time.Second); err == nil {
			t.Error("a terminal that is gone is no error")
		}
	})
}
