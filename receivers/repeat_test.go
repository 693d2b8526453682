package receivers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/storage"

	"hwsagent/receivers"
	"hwsagent/receivers/receivertest"
)

// once is store for requests that may come again.
func once(w http.ResponseWriter, r *receivers.Request) error {
	return r.Once(w, func() (receivers.Answer, bool, error) {
		return func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }, true, store(w, r)
	})
}

// TestRepeats: a body is stored once while it is among the last 4,096 that were stored; not if it failed,
// or if it means something else.
func TestRepeats(t *testing.T) {
	l := &receivertest.Log{}
	g := l.Gate("x", receivers.DefaultLimits())
	h := g.Handler(once, nil)
	send := func(body string, code int) {
		t.Helper()
		if w := post(h, "", []byte(body)); w.Code != code {
			t.Fatalf("%q: %d %s", body, w.Code, w.Body)
		}
	}
	repeated := func(want uint64) {
		t.Helper()
		if c := g.Counts(); c.Repeated != want {
			t.Errorf("%d requests count as repeated, want %d", c.Repeated, want)
		}
	}
	l.Fail(receivertest.ErrFull)
	send("a", 503)
	l.Fail(nil)
	send("a", 204)
	repeated(0)
	send("a", 204)
	repeated(1)
	if n := len(l.Samples()); n != 1 {
		t.Errorf("%d samples are stored, want 1", n)
	}
	if w := post(h, "gzip", gzipped(t, []byte("a"))); w.Code != 204 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	repeated(1)
	for i := range 4094 { // with the two before, as many as are remembered
		send(fmt.Sprint(i), 204)
	}
	send("a", 204)
	repeated(2)
	send("one more", 204)
	send("a", 204)
	repeated(2)
}

// slowLog is a log whose commits wait, and fail as often as told.
type slowLog struct {
	receivertest.Log
	fail int
}

func (l *slowLog) AppenderV2(ctx context.Context) storage.AppenderV2 {
	return &slowAppender{l.Log.AppenderV2(ctx), l}
}

type slowAppender struct {
	storage.AppenderV2
	log *slowLog
}

func (a *slowAppender) Commit() error {
	time.Sleep(time.Second)
	if a.log.fail > 0 {
		a.log.fail--
		return errors.Join(errors.New("the disk"), a.Rollback())
	}
	return a.AppenderV2.Commit()
}

// TestEqualRequestsAtOnce: of equal requests at one time, one is stored; if that fails, the next is.
func TestEqualRequestsAtOnce(t *testing.T) {
	for fail := range 3 {
		synctest.Test(t, func(t *testing.T) {
			l := &slowLog{fail: fail}
			g := receivers.NewGate(receivers.GateOptions{
				Name: "x", Limits: receivers.DefaultLimits(), Out: l, Logger: slog.New(slog.DiscardHandler), Full: func(error) bool { return false },
			})
			h := g.Handler(once, nil)
			codes := make(chan int)
			for range 3 {
				go func() { codes <- post(h, "", []byte("a")).Code }()
			}
			got := map[int]int{}
			for range 3 {
				got[<-codes]++
			}
			if got[503] != fail || got[204] != 3-fail || g.Counts().Repeated != uint64(2-fail) || len(l.Samples()) != 1 {
				t.Errorf("%d commits fail: %v, %d repeated, %d stored", fail, got, g.Counts().Repeated, len(l.Samples()))
			}
		})
	}
}
