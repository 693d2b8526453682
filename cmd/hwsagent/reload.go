package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"hwsagent/agent/control"
)

func newReloadCommand(f *flags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Make the running agent load its configuration again",
		Long:  "Make the agent that runs on --storage.path load its configuration again. A mistake in it\nchanges nothing.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, body, err := control.Do(cmd.Context(), f.storage, http.MethodPost, "/-/reload")
			switch {
			case errors.Is(err, control.ErrNotRunning):
				return &exitError{code: exitDown, err: err}
			case err != nil:
				return failed("reload", err)
			}
			text := strings.TrimSpace(string(body))
			if asJSON {
				if err := json.NewEncoder(f.stdout).Encode(map[string]any{"reloaded": status == http.StatusOK, "text": text}); err != nil {
					return failed("print the result", err)
				}
			}
			if status != http.StatusOK {
				return &exitError{code: exitConfig, err: errors.New(text)}
			}
			if !asJSON {
				fmt.Fprintln(f.stdout, text)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
