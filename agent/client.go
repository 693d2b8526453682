package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"hwsagent/agent/control"
	"hwsagent/web"
)

// ErrNotRunning means that no agent runs on the storage directory.
var ErrNotRunning = control.ErrNotRunning

// ErrReload means that a running agent could not use its configuration file.
var ErrReload = errors.New("the reload failed and changed nothing")

// FetchStatus asks the agent that runs on the storage directory. Without one, the error
// is ErrNotRunning, and the status what [OfflineStatus] finds there, if there is a log. It is
// ErrSilent if the agent does not tell its status in time.
func FetchStatus(ctx context.Context, storage string) (web.Status, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, silentAfter, ErrSilent)
	defer cancel()
	code, body, err := control.Do(ctx, storage, http.MethodGet, "/api/v1/status")
	if errors.Is(err, ErrNotRunning) {
		s, offline := OfflineStatus(storage, time.Now())
		return s, errors.Join(err, offline)
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), ErrSilent) {
			err = ErrSilent
		}
		return web.Status{}, err
	}
	if code != http.StatusOK {
		return web.Status{}, fmt.Errorf("ask the agent for its status: %d %s", code, firstLine(body))
	}
	var s web.Status
	if err := json.Unmarshal(body, &s); err != nil {
		return web.Status{}, fmt.Errorf("read the agent's status: %w", err)
	}
	return s, nil
}

// WriteStatus prints a status for people.
func WriteStatus(w io.Writer, s web.Status) error { return web.WriteText(w, s) }

// RequestReload makes the agent that runs on the storage directory read its configuration
// again. Where that fails, the error is ErrReload with the agent's whole answer; ErrSilent if it
// does not answer at all. Where something that hangs keeps it from an answer the error says
// what: within ten seconds.
func RequestReload(ctx context.Context, storage string) error {
	code, body, err := ask(ctx, storage, http.MethodPost, "/-/reload")
	if err != nil {
		return err
	}
	switch code {
	case http.StatusOK:
		return nil
	case http.StatusAccepted, http.StatusServiceUnavailable:
		return errors.New(strings.TrimRight(string(body), "\n"))
	}
	return fmt.Errorf("%w:\n%s", ErrReload, strings.TrimPrefix(strings.TrimRight(string(body), "\n"), web.ReloadFailed))
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}
