// Package web serves the agent's page, JSON status, metrics, health checks and reload. It renders a [status.Status] and
// the inventory of a device, and knows nothing else about the agent.
package web
