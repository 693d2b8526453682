package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hwsagent/agent/control"
	"hwsagent/agent/queues"
)

// TestSkipThatIsEnded: a search of the log that ends early, since the reader goes or the agent stops, skips nothing and says so.
func TestSkipThatIsEnded(t *testing.T) {
	storage := t.TempDir()
	r := startAgent(t, storage, entry("a", "http://127.0.0.1:1", ""))
	until(t, "something waits", func() bool { s, ok := r.target("a"); return ok && s.PendingSamples > 10 })
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(control.ErrStopping)
	asked := queues.Request{Action: queues.ActionSkip, Target: "a", Before: time.Now()}
	if c, err := r.skip(ctx, asked, func(int64, int64) {}); err == nil || err.Error() != "nothing is skipped: the agent is stopping" {
		t.Errorf("%+v, %v", c, err)
	}
	if s, _ := r.target("a"); s.Ledger.Lost != 0 || s.PendingSamples == 0 {
		t.Errorf("the ledger: %+v", s.Ledger)
	}
	r.end()

	ctx, cancel = context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	m := queues.Manager{Storage: storage}
	if _, err := m.Skip(ctx, "a", time.Now(), false); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("without an agent: %v", err)
	}
	if c, err := m.Skip(t.Context(), "a", time.Now(), true); err != nil || c.Samples == 0 || c.Ledger.Lost != 0 {
		t.Errorf("a dry run afterwards: %+v, %v", c, err)
	}
}

// TestSkipProgress: the reader of a long search hears how far it is, without an agent and with one, whose answer may be cut.
func TestSkipProgress(t *testing.T) {
	storage := t.TempDir()
	r := startAgent(t, storage, entry("a", "http://127.0.0.1:1", ""))
	until(t, "something waits", func() bool { s, ok := r.target("a"); return ok && s.PendingSamples > 10 })
	r.end()
	var reads []int64
	of := int64(0)
	m := queues.Manager{Storage: storage, Progress: func(read, all int64) { reads, of = append(reads, read), all }}
	c, err := m.Skip(t.Context(), "a", time.Now(), true)
	if err != nil || len(reads) < 3 || !slices.IsSorted(reads) || reads[0] <= 0 || reads[len(reads)-1] != c.Bytes || of != c.Bytes {
		t.Errorf("%d bytes, progress %v of %d: %v", c.Bytes, reads, of, err)
	}

	for name, answered := range map[string]struct {
		lines []string
		fail  string
	}{
		"found":   {[]string{`{"read":1,"of":9}`, `{"read":5,"of":9}`, `{"change":{"target":"a","samples":7}}`}, ""},
		"refused": {[]string{`{"read":1,"of":9}`, `{"read":5,"of":9}`, `{"refused":{"error":"the disk"}}`}, "the disk"},
		"cut":     {[]string{`{"read":1,"of":9}`, `{"read":5,"of":9}`}, "read the agent's answer: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			serveControl(t, dir, func(w http.ResponseWriter, h *http.Request) {
				if h.URL.Path != "/control/skip" || h.URL.Query().Get("target") != "a" {
					t.Errorf("the request is %s", h.URL)
				}
				for _, l := range answered.lines {
					fmt.Fprintln(w, l)
					_ = http.NewResponseController(w).Flush()
				}
			})
			reads = nil
			m := queues.Manager{Storage: dir, Progress: m.Progress}
			c, err := m.Skip(t.Context(), "a", time.Now(), true)
			if !slices.Equal(reads, []int64{1, 5}) || of != 9 {
				t.Errorf("progress %v of %d", reads, of)
			}
			if answered.fail == "" && (err != nil || c.Samples != 7) || answered.fail != "" && (err == nil || !strings.Contains(err.Error(), answered.fail)) {
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
}

// serveControl answers at the control socket of a directory in place of an agent.
func serveControl(t *testing.T, dir string, h http.HandlerFunc) {
	t.Helper()
	l, err := control.Listen(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("listen in %s: %v", filepath.Base(dir), err)
	}
	s := &http.Server{Handler: h}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), <-done); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}
