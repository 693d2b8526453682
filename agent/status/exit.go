package status

import (
	"fmt"
	"strings"
)

// The exit codes of hwsagent. They are part of the interface: `hwsagent status` returns ExitOK, ExitTarget,
// ExitAttention, ExitNotRunning or ExitSilent.
const (
	ExitOK = iota
	ExitFailed
	ExitUsage
	ExitConfig
	ExitTarget
	ExitAttention
	ExitDamaged
	ExitNotRunning
	ExitSilent
	ExitLeft
)

// ExitCodes returns the exit codes and their meanings, one a line, for the help of commands.
func ExitCodes() string {
	lines := []string{"Exit codes:"}
	for code, meaning := range [...]string{
		ExitOK:         "all is well",
		ExitFailed:     "failed at run time",
		ExitUsage:      "wrong usage",
		ExitConfig:     "the configuration, or a file that it names, is wrong or cannot be read",
		ExitTarget:     "a target failed; status: a target has a problem",
		ExitAttention:  "a probe failed; status: something else has a problem",
		ExitDamaged:    "the log is damaged",
		ExitNotRunning: "the agent is not running",
		ExitSilent:     "the agent does not answer",
		ExitLeft:       "stopped, although a part hung",
	} {
		lines = append(lines, fmt.Sprintf("  %d  %s", code, meaning))
	}
	return strings.Join(lines, "\n")
}
