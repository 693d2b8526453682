// Package crashlab breaks the machine under a running hwsagent and computes what was
// lost: SIGKILL at random moments and at every single system call that changes the log,
// power cuts of real file systems, disks that are full, read-only, slow or broken,
// networks and receivers that fail in every way, clocks that are set while it works,
// senders that stall, lie and leave while every way into it is in use.
//
// The generator is the canary probe, whose values are numbers that it also notes in a
// journal outside the log: tried, acknowledged. The other side is the demo's recording
// receiver. The oracle compares the two, and reads the agent's own ledger between all
// lives of the agent: loss, duplicates, order, ghosts and an account that does not add up
// fail the test. Every test proves that its fault took place.
//
// `make faults` runs a short tier, `go run ./internal/tools/torture` (HWSAGENT_TORTURE=1) the full
// one. HWSAGENT_SEED replays a run. Tests that mount file systems or break networks do so in
// namespaces of their own, which end with them.
package crashlab
