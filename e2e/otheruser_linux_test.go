package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOtherUser: a user without access to the storage directory learns which path is closed, and what helps.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	t.Parallel()
	a := startAgent(t, "probes: []\nremote_write: []\n")
	own := t.TempDir() // of root
	for _, c := range []struct {
		args      []string
		says, try string
	}{
		{[]string{"status", "--storage.path", a.storage}, "hwsagent: cannot open " + filepath.Join(a.storage, "control.sock") + ": permission denied\n",
			"Try: run this as the agent's user, or as root\n"},
		{[]string{"run", "--config.file", "/dev/null", "--storage.path", filepath.Join(own, "data")}, own,
			"Try: let your user write there, or choose another directory with --storage.path;"},
	} {
		cmd := exec.Command(binary(t), c.args...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.says) || !strings.Contains(string(out), c.try) {
			t.Errorf("hwsagent %s: %v, want %q and %q\n%s", strings.Join(c.args, " "), err, c.says, c.try, out)
		}
	}
}
