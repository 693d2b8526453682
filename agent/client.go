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
	"hwsagent/agent/web"
)

// ErrNotRunning means that no agent runs on the storage directory.
var ErrNotRunning = control.ErrNotRunning

// ErrReload means that a running agent could not use its configuration file.
var ErrReload = errors.New("the reload failed and changed nothing")

// FetchStatus asks the agent that runs on the storage directory for its status. Without a running agent the error is
// ErrNotRunning and the status is that of [OfflineStatus], if there is a log. The error is control.ErrSilent if the agent does
// not answer in time.
func FetchStatus(ctx context.Context, storage string) (web.Status, error) {
	code, body, err := control.AskSoon(ctx, storage, http.MethodGet, "/api/v1/status")
	if errors.Is(err, ErrNotRunning) {
		s, offline := OfflineStatus(storage, time.Now())
		return s, errors.Join(err, offline)
	}
	if err != nil {
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

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}
