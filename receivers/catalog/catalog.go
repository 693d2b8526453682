// Package catalog is the table of the receivers that need no settings beyond those of every receiver. A new one is a
// package of its own and one entry in [Types].
package catalog

import (
	"net/http"

	"hwsagent/receivers"
	"hwsagent/receivers/promtext"
	"hwsagent/receivers/remotewrite"
)

// Type is one type of receiver.
type Type struct {
	Name string // the key below receivers, and the name in logs and the status
	Port string // that senders of its protocol use by default
	// New returns the handler of its requests. Each sample that it accepts goes through the gate.
	New func(g *receivers.Gate) http.Handler
}

// Types returns all types.
func Types() []Type {
	return []Type{
		{Name: "remote_write", Port: "9465", New: func(g *receivers.Gate) http.Handler { return remotewrite.New(g) }},
		{Name: "import", Port: "9466", New: func(g *receivers.Gate) http.Handler { return promtext.New(g) }},
	}
}
