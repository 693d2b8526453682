package receivers

import (
	"net/http"

	"hwsagent/internal/panics"
)

// contained answers 500 to a request whose handling panics, or cuts the connection if the answer has begun: half an
// answer must not look complete.
func contained(guard *panics.Guard, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &answer{ResponseWriter: w}
		err := guard.Run(func() { next.ServeHTTP(out, r) })
		switch {
		case err == nil:
		case out.begun:
			panic(http.ErrAbortHandler) // makes the server cut the connection without logging
		default:
			w.Header().Del("Content-Encoding")
			http.Error(w, "the request failed because of a bug in the agent; the agent's log has the details", http.StatusInternalServerError)
		}
	})
}

// answer records whether it has begun.
type answer struct {
	http.ResponseWriter
	begun bool
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	a.begun = true
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(p []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(p)
}
