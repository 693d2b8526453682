package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"hwsagent/agent/check"
	"hwsagent/agent/config"
	"hwsagent/agent/control"
	"hwsagent/agent/hardware"
	"hwsagent/agent/queues"
)

// Check runs a check with this agent's probes and storage; see [check.Run].
func Check(ctx context.Context, o check.Options) (check.Report, error) {
	o.Beside, o.RunProbe = queues.BesideLog(), hardware.RunRound
	return check.Run(ctx, o)
}

// TestTarget makes the agent that runs on the storage directory test the route to a target; without an agent it tests
// from here, with the configuration file. It sends no samples. If the test succeeds, a running agent whose target is
// held or waiting retries at once.
func TestTarget(ctx context.Context, storage, configFile, target string) (check.TargetTest, error) {
	var t check.TargetTest
	err := control.Call(ctx, storage, queues.Request{Action: "test", Target: target}.Path(), &t)
	if !errors.Is(err, control.ErrNotRunning) {
		return t, err
	}
	cfg, _, err := config.Load(configFile, os.LookupEnv)
	if err != nil {
		return t, err
	}
	c, err := cfg.Target(target)
	if err != nil {
		return t, err
	}
	return check.Target(ctx, c, false), nil
}

// testTarget is TestTarget in the agent. It ends within ten seconds, although the agent otherwise waits up to
// remote_timeout for the receiver's answer.
func (a *Agent) testTarget(ctx context.Context, name string) (check.TargetTest, error) {
	a.mu.Lock()
	cfg := a.cfg
	a.mu.Unlock()
	c, err := cfg.Target(name)
	if err != nil {
		return check.TargetTest{}, err
	}
	tooLong := fmt.Errorf("the test took longer than its limit of %s", a.changes.within)
	ctx, cancel := context.WithTimeoutCause(ctx, a.changes.within, tooLong)
	defer cancel()
	tried := make(chan check.TargetTest, 1)
	go func() { tried <- check.Target(ctx, c, true) }()
	var t check.TargetTest
	select {
	case t = <-tried:
	case <-time.After(a.changes.within + time.Second): // reading a file may hang beyond ctx
		return check.TargetTest{}, fmt.Errorf("test target %q: %w, and has not ended: a file that its entry names does not answer", name, tooLong)
	}
	if running := a.targets.Get(name); running != nil && t.Result != check.Fail {
		running.Poke()
	}
	return t, nil
}
