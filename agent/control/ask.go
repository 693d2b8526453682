package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// SilentAfter bounds how long a running agent may take to answer a liveness request or a status request.
const SilentAfter = 5 * time.Second

// ErrSilent means that an agent holds the storage directory but does not answer within five seconds. It may still carry
// out the request once it runs again.
var ErrSilent = fmt.Errorf("the agent does not answer within %s: its process is stopped, or blocked (on the disk?)", SilentAfter)

// Ask sends a request to the agent that runs on the storage directory. It waits for the answer as long as the agent
// answers liveness requests, because some work, such as reading a long queue, takes its time. The error is ErrSilent,
// or one of [Do].
func Ask(ctx context.Context, storage, method, path string) (status int, body []byte, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { watchSilence(ctx, storage, cancel) })
	status, body, err = Do(ctx, storage, method, path)
	if err != nil && errors.Is(context.Cause(ctx), ErrSilent) {
		err = ErrSilent
	}
	cancel(nil)
	watch.Wait()
	return status, body, err
}

// AskSoon is Do for a request whose answer takes no time. Without an answer within five seconds the error is ErrSilent.
func AskSoon(ctx context.Context, storage, method, path string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, SilentAfter, ErrSilent)
	defer cancel()
	status, body, err = Do(ctx, storage, method, path)
	if err != nil && !errors.Is(err, ErrNotRunning) && errors.Is(context.Cause(ctx), ErrSilent) {
		err = ErrSilent
	}
	return status, body, err
}

// watchSilence polls the agent for liveness until ctx ends or the agent is gone, which Ask notices, too. It cancels ctx
// if the agent does not answer.
func watchSilence(ctx context.Context, storage string, end context.CancelCauseFunc) {
	for {
		alive, stop := context.WithTimeoutCause(ctx, SilentAfter, ErrSilent)
		_, _, err := Do(alive, storage, http.MethodGet, "/-/healthy")
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
		case <-time.After(SilentAfter):
		}
	}
}
