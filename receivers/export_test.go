package receivers

import (
	"log/slog"
	"net/http"
)

// HTTPServer returns the server of a receiver, for tests that bring a listener of their own.
func HTTPServer(s Spec) *http.Server {
	return (&server{spec: s, log: slog.New(slog.DiscardHandler)}).http()
}
