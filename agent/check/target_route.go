package check

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"hwsagent/agent/config"
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

// Target tests the whole route to a target. running says that the running agent does it.
func Target(ctx context.Context, c *remoteconfig.Config, running bool) TargetTest {
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
		fmt.Fprintf(&b, "  %s %s\n", s.Result.mark(), s.about(&Group{Kind: GroupTarget}))
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
