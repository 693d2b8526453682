// Package web serves the agent's page, JSON status, metrics, health checks and reload. It renders a [status.Status], and
// knows nothing else about the agent.
package web
