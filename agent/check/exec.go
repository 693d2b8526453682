package check

import (
	"fmt"
	"os"
	"runtime"

	"hwsagent/agent/config"
	"hwsagent/probes/exec"
)

// checkCommands checks the programs that probes run.
func checkCommands(c *config.Config) (steps []Step) {
	for i := range c.Probes {
		p := &c.Probes[i]
		s, ok := p.Settings.(*exec.Config)
		if !ok || !p.Enabled || len(s.Command) == 0 {
			continue
		}
		step := checkCommand(p.Name, s.Command[0])
		step.Name, step.Text, step.Try = s.Hide.Cut(step.Name), s.Hide.Cut(step.Text), s.Hide.Cut(step.Try)
		steps = append(steps, step)
	}
	return steps
}

// checkCommand checks one program: whether it can be run, and who can replace it.
func checkCommand(probe, path string) Step {
	info, err := os.Stat(path)
	owner := "for probe " + probe + ": "
	switch {
	case err != nil:
		return Step{Name: path, Result: Fail, Text: owner + err.Error(), Try: "install it, or correct command"}
	case !info.Mode().IsRegular():
		return Step{Name: path, Result: Fail, Text: owner + "is not a regular file", Try: "correct command"}
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return Step{Name: path, Result: Fail, Text: owner + fmt.Sprintf("is not executable (%#o)", info.Mode().Perm()), Try: "chmod 755 " + path}
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0:
		return Step{Name: path, Result: Warn, Text: owner + fmt.Sprintf("every user of this host may change this program, which the agent runs (%#o)", info.Mode().Perm()), Try: "chmod o-w " + path}
	}
	return Step{Name: path, Result: OK, Text: "executable"}
}
