package check

import (
	"cmp"
	"errors"
	"fmt"

	"hwsagent/agent/config"
	"hwsagent/internal/text"
	"hwsagent/probes/snmp"
)

// checkModules reads the files of SNMP modules that probes name. It reports which parts have no effect, and where the
// agent differs from snmp_exporter with the same files.
func checkModules(c *config.Config) (steps []Step) {
	seen := map[string]bool{}
	for i := range c.Probes {
		p := &c.Probes[i]
		s, ok := p.Settings.(*snmp.Config)
		job := cmp.Or(p.Job, p.Name)
		if !ok || !p.Enabled || len(s.ConfigFiles)+len(s.Definitions) == 0 && s.Auth.Version != 1 || seen[job] { // the devices of a list share one step
			continue
		}
		seen[job] = true
		name := "modules of probe " + job
		notes, err := s.Examine()
		if err != nil {
			steps = append(steps, failedModules(name, err)...)
			continue
		}
		if len(s.ConfigFiles) > 0 {
			steps = append(steps, Step{Name: name, Result: OK, Text: text.Counted(len(s.Modules), "module") + " of config_files"})
		}
		for _, n := range notes {
			step := Step{Name: name, Result: OK, Text: placeOfNote(n) + n.Text, Try: n.Try}
			if n.Severe {
				step.Result = Warn
			}
			steps = append(steps, step)
		}
	}
	return steps
}

// failedModules returns a step for each mistake in err.
func failedModules(name string, err error) (steps []Step) {
	all := []error{err}
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		all = many.Unwrap()
	}
	for _, one := range all {
		step := Step{Name: name, Result: Fail, Text: one.Error()}
		var n *snmp.Note
		if errors.As(one, &n) {
			step.Text, step.Try = placeOfNote(n)+n.Text, n.Try
		}
		steps = append(steps, step)
	}
	return steps
}

func placeOfNote(n *snmp.Note) string {
	if n.Line == 0 {
		return n.File + ": "
	}
	return fmt.Sprintf("%s:%d:%d: ", n.File, n.Line, n.Column)
}
