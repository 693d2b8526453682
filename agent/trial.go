package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"hwsagent/agent/config"
	"hwsagent/agent/control"
	"hwsagent/agent/queues"
	remoteconfig "hwsagent/remotewrite/config"
)

// TargetTest is the outcome of testing the route to a target: its credential files, name, connection, TLS, and a write
// without samples.
type TargetTest struct {
	Schema  int    `json:"schema"` // 1
	Target  string `json:"target"`
	URL     string `json:"url"`
	Running bool   `json:"running"` // tested by the running agent; false: by this process, with the configuration file
	Result  Result `json:"result"`
	Steps   []Step `json:"steps"`
}

// TestTarget makes the agent that runs on the storage directory test the route to a target; without an agent it tests
// from here, with the configuration file. It sends no samples. If the test succeeds, a running agent whose target is
// held or waiting retries at once.
func TestTarget(ctx context.Context, storage, configFile, target string) (TargetTest, error) {
	var t TargetTest
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
	return tryTarget(ctx, c, false), nil
}

// testTarget is TestTarget in the agent. It ends within ten seconds, although the agent otherwise waits up to
// remote_timeout for the receiver's answer.
func (a *Agent) testTarget(ctx context.Context, name string) (TargetTest, error) {
	a.mu.Lock()
	cfg := a.cfg
	a.mu.Unlock()
	c, err := cfg.Target(name)
	if err != nil {
		return TargetTest{}, err
	}
	tooLong := fmt.Errorf("the test took longer than its limit of %s", a.changes.within)
	ctx, cancel := context.WithTimeoutCause(ctx, a.changes.within, tooLong)
	defer cancel()
	tried := make(chan TargetTest, 1)
	go func() { tried <- tryTarget(ctx, c, true) }()
	var t TargetTest
	select {
	case t = <-tried:
	case <-time.After(a.changes.within + time.Second): // reading a file may hang beyond ctx
		return TargetTest{}, fmt.Errorf("test target %q: %w, and has not ended: a file that its entry names does not answer", name, tooLong)
	}
	if running := a.targets.Get(name); running != nil && t.Result != Fail {
		running.Poke()
	}
	return t, nil
}

// tryTarget tests the whole route.
func tryTarget(ctx context.Context, c *remoteconfig.Config, running bool) TargetTest {
	t := TargetTest{Schema: 1, Target: c.TargetName(), URL: c.URL.String(), Running: running, Result: OK}
	if len(c.CredentialFiles()) > 0 {
		t.Steps = append(t.Steps, checkFiles(&config.Config{RemoteWrite: []*remoteconfig.Config{c}}, time.Now()).Steps...)
	}
	t.Steps = append(t.Steps, checkTarget(ctx, c)...)
	for _, s := range t.Steps {
		t.Result = worse(t.Result, s.Result)
	}
	return t
}

// WriteText prints every step.
func (t TargetTest) WriteText(w io.Writer) error {
	var b strings.Builder
	by := "tested from here, with the configuration file: no agent is running"
	if t.Running {
		by = "tested by the running agent"
	}
	fmt.Fprintf(&b, "target %s (%s), %s\n", t.Target, t.URL, by)
	for _, s := range t.Steps {
		fmt.Fprintf(&b, "  %s %s\n", s.Result.mark(), s.about(Group{Kind: GroupTarget}))
		if s.Try != "" {
			fmt.Fprintf(&b, "      Try: %s\n", s.Try)
		}
	}
	switch t.Result {
	case OK:
		fmt.Fprintln(&b, "it accepts data over this route")
	case Warn:
		fmt.Fprintln(&b, "it may accept data over this route; see above")
	default:
		fmt.Fprintln(&b, "the target accepts no data now; collected samples wait in the log")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
