//go:build !linux

package clock

import "time"

// bootTime is not known here: a suspend counts as a step forward.
func bootTime() (time.Duration, bool) { return 0, false }
