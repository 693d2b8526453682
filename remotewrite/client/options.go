package client

import (
	"log/slog"
	"time"

	"hwsagent/remotewrite/config"
)

// Options are the settings of a client that its configuration does not have.
type Options struct {
	Version string       // of the agent, for the User-Agent header
	Logger  *slog.Logger // with the target's name; nil: no logging
	Metrics Metrics      // nil: no metrics

	Dial          DialFunc      // nil: TCP
	ConnectionAge time.Duration // 0: five minutes
}

// withDefaults returns the options with defaults for unset fields; c is the target's entry.
func (o Options) withDefaults(c *config.Config) Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	if o.Dial == nil {
		o.Dial = newDial(c.RoundRobinDNS, time.Duration(c.RemoteTimeout))
	}
	if o.ConnectionAge <= 0 {
		o.ConnectionAge = defaultConnectionAge
	}
	return o
}

// Metrics shows the state of a client's credentials.
type Metrics interface {
	// Reloaded counts a change of the credential files; err is the reason if they cannot be used.
	Reloaded(err error)
	// SetExpiry shows when the earliest certificate of a role ends.
	SetExpiry(role string, t time.Time)
	// SetExpiries shows when the certificates and the token of new credentials end, by role,
	// and removes the values of the previous ones.
	SetExpiries(ends map[string]time.Time)
	// SetTokenEnd shows when the access token in use ends; t is zero if the end is unknown.
	SetTokenEnd(t time.Time)
}

// noMetrics discards everything.
type noMetrics struct{}

func (noMetrics) Reloaded(error)                   {}
func (noMetrics) SetExpiry(string, time.Time)      {}
func (noMetrics) SetExpiries(map[string]time.Time) {}
func (noMetrics) SetTokenEnd(time.Time)            {}
