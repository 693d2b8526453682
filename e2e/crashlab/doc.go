// Package crashlab breaks the machine under a running hwsagent and computes the losses:
// SIGKILL at random moments and at every single system call that changes the log, power
// cuts of real file systems, disks that are full, read-only, slow or broken, networks and
// receivers that fail in every way, steps of the clock, and senders that stall, send
// malformed requests or disconnect, while all kinds of inputs are in use.
//
// The canary probe generates the samples. Their values are numbers that it also notes in a
// journal outside the log: tried, acknowledged. The demo's recording receiver takes them.
// The oracle compares the two, and reads the agent's own ledger after each life of the
// agent: loss, duplicates, wrong order, samples from nowhere and an account that does not
// add up fail the test. Every test proves that its fault took place.
//
// `make faults` runs a short tier, `go run ./internal/tools/torture` (HWSAGENT_TORTURE=1) the full
// one. HWSAGENT_SEED replays a run. Tests that mount file systems or break networks do so in
// namespaces of their own, which end with them.
package crashlab
