package remotewrite

import (
	"testing"

	"go.yaml.in/yaml/v4"

	"hwsagent/remotewrite/config"
)

func load(text string) (*config.Config, error) {
	var c config.Config
	err := yaml.Load([]byte(text), &c, yaml.WithKnownFields())
	return &c, err
}

func mustLoad(t testing.TB, text string) *config.Config {
	t.Helper()
	c, err := load(text)
	if err != nil {
		t.Fatal(err)
	}
	if p := c.Validate(); len(p) > 0 {
		t.Fatal(p)
	}
	return c
}
