package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"hwsagent/agent/control"
)

// silentAfter is how long a running agent may take to say that it lives, and to tell its status.
const silentAfter = 5 * time.Second

// ErrSilent means that an agent has the storage directory, and does not answer within five
// seconds. What it was asked to do may still be done when it goes on.
var ErrSilent = fmt.Errorf("the agent does not answer within %s: its process is stopped, or waits for something (the disk?)", silentAfter)

// ask sends a request to the agent that runs on the storage directory, and waits for the
// answer for as long as the agent shows that it lives: what takes its time, such as reading
// a long queue, is no silence. The error is ErrSilent, or [control.Do]'s.
func ask(ctx context.Context, storage, method, path string) (status int, body []byte, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { watchSilence(ctx, storage, cancel) })
	status, body, err = control.Do(ctx, storage, method, path)
	if err != nil && errors.Is(context.Cause(ctx), ErrSilent) {
		err = ErrSilent
	}
	cancel(nil)
	watch.Wait()
	return status, body, err
}

// watchSilence asks the agent again and again whether it lives, until ctx ends or the agent is
// gone, which who waits for it finds out as well. It ends ctx if the agent says nothing.
func watchSilence(ctx context.Context, storage string, end context.CancelCauseFunc) {
	for {
		alive, stop := context.WithTimeoutCause(ctx, silentAfter, ErrSilent)
		_, _, err := control.Do(alive, storage, http.MethodGet, "/-/healthy")
		silent := err != nil && errors.Is(context.Cause(alive), ErrSilent)
		stop()
		if silent {
			end(ErrSilent)
		}
		if err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(silentAfter):
		}
	}
}
