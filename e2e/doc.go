// Package e2e tests hwsagent from outside: the built binary against real parts
// (Debian's prometheus, victoria-metrics, nginx, snmpd; Prometheus 3's receiver and TSDB,
// built by e2e/prometheus3) and against the demo's recording receiver.
//
// `make e2e` runs it. A test that needs another program is skipped by its name where
// that is missing; with CI=true that is a failure. HWSAGENT_SEED replays a random test,
// HWSAGENT_BINARY names the binary to test instead of building one, HWSAGENT_PROMETHEUS3
// that of e2e/prometheus3.
//
// The tests see only what a user sees, so they import no package of the agent. The one
// exception is agent/demo/receiver, which stands for the other side of remote write.
package e2e
