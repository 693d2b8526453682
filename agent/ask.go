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

// silentAfter bounds how long a running agent may take to answer a liveness request or a status request.
const silentAfter = 5 * time.Second

// ErrSilent means that an agent holds the storage directory but does not answer within five seconds. It may still carry
// out the request once it runs again.
var ErrSilent = fmt.Errorf("the agent does not answer within %s: its process is stopped, or blocked (on the disk?)", silentAfter)

// ask sends a request to the agent that runs on the storage directory. It waits for the answer as long as the agent
// answers liveness requests, because some work, such as reading a long queue, takes its time. The error is ErrSilent,
// or one of [control.Do].
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

// watchSilence polls the agent for liveness until ctx ends or the agent is gone; ask notices the latter by itself. It
// cancels ctx if the agent does not answer.
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
