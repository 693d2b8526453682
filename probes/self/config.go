package self

import "fmt"

// Config is the configuration of the probe.
type Config struct {
	Level Level `yaml:"level,omitempty"` // `brief`: the metrics that dashboards and alerts read; `full`: all of /metrics; default brief
}

// Level says how many of the agent's own series are sent to targets. /metrics always has all of them.
type Level string

// The levels.
const (
	Brief Level = "brief" // the series that dashboards and alerts use
	Full  Level = "full"
)

// Validate reports mistakes in c.
func (c *Config) Validate() error {
	switch c.Level {
	case "", Brief, Full:
		return nil
	}
	return fmt.Errorf("level: unknown level %q: write %s or %s", c.Level, Brief, Full)
}
