//go:build unix

package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hwsagent/agent/config"
)

// inside is a directory of the storage path that is not part of the log.
const inside = "dead-letters"

// TestCheckUnsafeStorage: the check fails for each storage directory with which the agent does not start, and says why. Root
// may check for the owner of a directory.
func TestCheckUnsafeStorage(t *testing.T) {
	cfg, _, err := config.LoadBytes("agent.yaml", nil, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	cfg.WAL.MinFreeBytes, cfg.WAL.MaxBytes = 1, 1<<20
	for name, c := range map[string]struct {
		spoil func(dir string) error
		want  Result
		says  string
	}{
		"safe":                 {func(string) error { return nil }, OK, ""},
		"writable by others":   {func(dir string) error { return os.Chmod(dir, 0o777) }, Fail, "mode 0777"},
		"a link":               {func(dir string) error { return os.Symlink(t.TempDir(), filepath.Join(dir, "link")) }, Fail, "symbolic link"},
		"one inside is unsafe": {func(dir string) error { return os.Chmod(filepath.Join(dir, inside), 0o777) }, Fail, inside},
		"of another user":      {func(dir string) error { return os.Chown(dir, 65534, -1) }, Warn, "belongs to uid 65534"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, inside), 0o700); err != nil {
				t.Fatal(err)
			}
			if c.want == Warn && os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			if name == "a link" {
				dir = filepath.Join(dir, "link")
			}
			g := checkStorage(t.Context(), cfg, dir, []string{inside})
			if g.judge(); g.Result != c.want || !strings.Contains(worst(g).Text, c.says) {
				t.Errorf("%s, want %s with %q: %+v", g.Result, c.want, c.says, g.Steps)
			}
		})
	}
}
