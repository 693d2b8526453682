//go:build !linux

package e2e

import "testing"

// storageDir returns a directory for an agent's log.
func storageDir(t *testing.T) string {
	t.Helper()
	return t.TempDir()
}
