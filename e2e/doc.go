// Package e2e tests hwsagent from outside: the built binary against real parts
// (Debian's prometheus, nginx, snmpd) and against the demo's recording receiver.
//
// Nothing here imports the agent's packages: what is seen here is what a user sees. The
// one exception is agent/demo/receiver, which is not part of the agent under test but
// of the other side.
package e2e
