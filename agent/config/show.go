package config

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"hwsagent/internal/text"
	"hwsagent/probes/exec"
)

// Redacted returns the configuration in force as YAML for people, defaults included. Secrets, values of headers, and
// the user and query of URLs are masked.
func (c *Config) Redacted() ([]byte, error) {
	b, err := yaml.Dump(c)
	if err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return b, nil
}

// MarshalYAML writes the keys of the probe's type beside the common ones.
func (p Probe) MarshalYAML() (any, error) {
	type plain Probe
	var common, theirs yaml.Node
	if err := common.Encode(plain(p)); err != nil {
		return nil, err
	}
	if p.Settings == nil {
		return &common, nil
	}
	if err := theirs.Encode(p.Settings); err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(theirs.Content); i += 2 {
		key, value := theirs.Content[i], theirs.Content[i+1]
		if e, ok := p.Settings.(*exec.Config); ok {
			cutTree(e.Hide, value)
		}
		empty := value.Kind == yaml.ScalarNode && (value.Value == "" || value.Value == "0s") ||
			value.Kind != yaml.ScalarNode && len(value.Content) == 0
		if key.Value != "target" && !empty {
			common.Content = append(common.Content, key, value)
		}
	}
	return &common, nil
}

// Describe returns the configuration in the file as text that may be shown: with the defaults, without secrets, and with its
// warnings as comments. If the file has mistakes, the text lists them instead.
func Describe(path string, env func(string) (string, bool)) []byte {
	cfg, warns, err := Load(path, env)
	if err != nil {
		return []byte(err.Error() + "\n")
	}
	text, err := cfg.Redacted()
	if err != nil {
		return []byte(err.Error() + "\n")
	}
	for _, w := range warns {
		text = append(text, "# "+w.String()+"\n"...)
	}
	return text
}

// Summary says in one line how many probes, jobs, receivers and targets the configuration has.
func (c *Config) Summary() string {
	n, self := 0, ""
	for _, p := range c.Probes {
		switch {
		case p.Enabled && p.Type == "self":
			self = " and the agent's own metrics"
		case p.Enabled:
			n++
		}
	}
	jobs := ""
	if c.scrape != nil && len(c.scrape.Names()) > 0 {
		jobs = ", " + text.Counted(len(c.scrape.Names()), "scrape job")
	}
	received := ""
	if n := len(c.Receivers.Listeners()); n > 0 {
		received = ", " + text.Counted(n, "receiver")
	}
	further := ""
	if n := len(c.Further); n > 0 {
		further = "; with " + text.Counted(n, "file") + " of " + confDir
	}
	return text.Counted(n, "probe") + self + jobs + received + ", " + text.Counted(len(c.RemoteWrite), "target") + further
}
