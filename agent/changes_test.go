package agent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hwsagent/agent/control"
	"hwsagent/agent/web"
)

// TestChangesAnswerInTime: whoever asks for a change gets an answer within ten seconds. It says
// what the change waits for, whether it goes on, and that a second one was not begun, which then
// never is.
func TestChangesAnswerInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChanges(answerWithin)
		over, ended := make(chan struct{}), make(chan error, 1)
		began := time.Now()
		err := c.do("the reload", func() error {
			c.at(`stopping target "up"`)
			<-over
			ended <- nil
			return nil
		})
		if took := time.Since(began); took > 10*time.Second || !errors.Is(err, web.ErrGoesOn) || !strings.Contains(err.Error(), `is still stopping target "up"`) {
			t.Errorf("after %s: %v", took, err)
		}
		if late := c.overdue(); !strings.HasPrefix(late, "the reload began at ") {
			t.Errorf("the status says %q", late)
		}
		began = time.Now()
		err = c.do("the command pause", func() error {
			t.Error("it was begun")
			return nil
		})
		if took := time.Since(began); took > 10*time.Second || !errors.Is(err, web.ErrNotBegun) || !strings.Contains(err.Error(), "changes nothing: the reload began at") {
			t.Errorf("after %s: %v", took, err)
		}
		close(over)
		<-ended
		synctest.Wait()
		if late := c.overdue(); late != "" {
			t.Errorf("nothing is under way, and the status says %q", late)
		}
		failed := errors.New("wrong")
		if err := c.do("the reload", func() error { return failed }); !errors.Is(err, failed) {
			t.Errorf("got %v, want the error of the change", err)
		}
	})
}

// TestChangesEndAtTheStop: a change under way is waited for, none begins any more, and whoever
// waits is answered at once.
func TestChangesEndAtTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChanges(answerWithin)
		over, answered, stopped := make(chan struct{}), make(chan error, 2), make(chan struct{})
		go func() { answered <- c.do("the reload", func() error { <-over; return nil }) }()
		synctest.Wait()
		go func() { answered <- c.do("the command skip", func() error { t.Error("it was begun"); return nil }) }()
		synctest.Wait()
		began := time.Now()
		go func() { c.refuse(); c.end(); close(stopped) }()
		for range 2 {
			if err := <-answered; !errors.Is(err, web.ErrGoesOn) && !errors.Is(err, control.ErrStopping) {
				t.Errorf("got %v", err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("who waited was answered after %s", took)
		}
		select {
		case <-stopped:
			t.Error("the change under way was not waited for")
		default:
		}
		close(over)
		<-stopped
	})
}
