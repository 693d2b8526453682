package agent

import (
	"fmt"

	"go.yaml.in/yaml/v4"

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
func (p ProbeConfig) MarshalYAML() (any, error) {
	type plain ProbeConfig
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
