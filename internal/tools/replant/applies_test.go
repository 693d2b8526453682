package replant

import (
	"os/exec"
	"testing"
)

// Every patch applies to the tree as it is: whoever changes what one changes renews it at
// once, not when the list is next run.
func TestPatchesApply(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git, which is not installed")
	}
	for _, m := range mistakes(t) {
		if _, err := plant(t.TempDir(), m); err != nil {
			t.Errorf("%s: %v", m.path, err)
		}
	}
}
