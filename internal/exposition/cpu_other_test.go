//go:build !unix

package exposition

import "time"

var started = time.Now()

// cpuTime is the time by the clock, where there is no other.
func cpuTime() time.Duration { return time.Since(started) }
