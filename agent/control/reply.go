package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"hwsagent/agent/config"
	"hwsagent/internal/text"
)

// ErrStopping means that the agent does not carry out a request because it is stopping.
var ErrStopping = errors.New("the agent is stopping")

// Refusal is the agent's answer to a request that it does not carry out.
type Refusal struct {
	Error        string `json:"error"`
	NoSuchTarget bool   `json:"no_such_target"`
	NoSuchInput  bool   `json:"no_such_input"`
}

// Refuse returns the answer to a request that failed with err.
func Refuse(err error) Refusal {
	return Refusal{Error: err.Error(), NoSuchTarget: errors.Is(err, config.ErrNoSuchTarget), NoSuchInput: errors.Is(err, config.ErrNoSuchInput)}
}

// Err returns the refusal as an error, which is config.ErrNoSuchTarget or config.ErrNoSuchInput if it says so; nil if there is none.
func (r Refusal) Err() error {
	switch {
	case r.Error == "":
		return nil
	case r.NoSuchTarget:
		return fmt.Errorf("%w%s", config.ErrNoSuchTarget, strings.TrimPrefix(r.Error, config.ErrNoSuchTarget.Error()))
	case r.NoSuchInput:
		return fmt.Errorf("%w%s", config.ErrNoSuchInput, strings.TrimPrefix(r.Error, config.ErrNoSuchInput.Error()))
	}
	return errors.New(r.Error)
}

// Reply sends a value as JSON, or the error that replaces it.
func Reply(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		v = Refuse(err)
		w.WriteHeader(http.StatusConflict)
	}
	_ = json.NewEncoder(w).Encode(v) // an error means that the client has gone
}

// Call posts to the agent that runs on the storage directory and decodes its reply. The error is that of [Ask], or the
// agent's refusal.
func Call(ctx context.Context, storage, path string, reply any) error {
	code, body, err := Ask(ctx, storage, http.MethodPost, path)
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		var no Refusal
		if json.Unmarshal(body, &no) != nil || no.Error == "" {
			return fmt.Errorf("ask the agent: %d %s", code, text.FirstLine(string(body)))
		}
		return no.Err()
	}
	if err := json.Unmarshal(body, reply); err != nil {
		return fmt.Errorf("read the agent's answer: %w", err)
	}
	return nil
}
