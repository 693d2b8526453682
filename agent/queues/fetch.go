package queues

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"hwsagent/agent/control"
	"hwsagent/agent/status"
	"hwsagent/internal/text"
)

// FetchStatus asks the agent that runs on the storage directory for its status. Without a running agent the error is
// control.ErrNotRunning and the status is that of [OfflineStatus], if there is a log. The error is control.ErrSilent if the agent does
// not answer in time.
func FetchStatus(ctx context.Context, storage string) (status.Status, error) {
	code, body, err := control.AskSoon(ctx, storage, http.MethodGet, "/api/v1/status")
	if errors.Is(err, control.ErrNotRunning) {
		s, offline := OfflineStatus(storage, time.Now())
		return s, errors.Join(err, offline)
	}
	if err != nil {
		return status.Status{}, err
	}
	if code != http.StatusOK {
		return status.Status{}, fmt.Errorf("ask the agent for its status: %d %s", code, text.FirstLine(string(body)))
	}
	var s status.Status
	if err := json.Unmarshal(body, &s); err != nil {
		return status.Status{}, fmt.Errorf("read the agent's status: %w", err)
	}
	return s, nil
}
