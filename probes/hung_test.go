package probes

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestRemovedWhileHung: a probe removed while a round of it hangs is closed when that returns, and not before: it must
// not leave processes behind.
func TestRemovedWhileHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := &probeFunc{f: func(context.Context, int, *Round) error { <-release; return nil }}
		r := NewRunner(&recorder{}, slog.New(slog.DiscardHandler))
		r.Apply([]Spec{spec("p", p)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		for r.Status()[0].State != "hung" {
			time.Sleep(time.Second)
		}
		r.Apply(nil)
		synctest.Wait()
		if p.closed != 0 {
			t.Fatal("it was closed while it was at work")
		}
		close(release)
		synctest.Wait()
		if p.closed != 1 {
			t.Errorf("it was closed %d times", p.closed)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestRemovedAfterTheEnd: a reload that ends after the runner closes no probe again, and leaves no goroutine behind that
// waits for a hanging round which was waited for already.
func TestRemovedAfterTheEnd(t *testing.T) {
	for name, hangs := range map[string]bool{"hanging": true, "idle": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				p := &probeFunc{f: func(context.Context, int, *Round) error {
					if hangs {
						<-release
					}
					return nil
				}}
				r := NewRunner(&recorder{}, slog.New(slog.DiscardHandler))
				r.Apply([]Spec{spec("p", p)})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- r.Run(ctx) }()
				for want := map[bool]string{true: "hung", false: "ok"}[hangs]; r.Status()[0].State != want; {
					time.Sleep(time.Second)
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				r.Apply(nil)
				close(release)
				synctest.Wait()
				if p.closed != 1 {
					t.Errorf("it was closed %d times", p.closed)
				}
			})
		})
	}
}
