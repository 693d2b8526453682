// Package otlpdiff compares the agent's translation of OTLP with Prometheus' own, on random metrics.
package otlpdiff
