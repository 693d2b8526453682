//go:build linux && !amd64

package crashlab

// canTrace says that runTracer works here.
const canTrace = false

func runTracer(string, []string) int { return 1 }
