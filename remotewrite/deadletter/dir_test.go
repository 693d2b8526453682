package deadletter

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hwsagent/wal/queue"
)

func TestDir(t *testing.T) {
	for _, name := range []string{"..", ".", "a/b", `a\b`, "ok", "host:9090/api/v1/write"} {
		dir := Dir("/s", name)
		if filepath.Dir(dir) != "/s/deadletters" || strings.Contains(filepath.Base(dir), ".") {
			t.Errorf("letters of %q go to %s", name, dir)
		}
	}
	devices := []string{"con", "PRN", "Aux", "nul"}
	for i := range 10 {
		devices = append(devices, fmt.Sprintf("com%d", i), fmt.Sprintf("LPT%d", i))
	}
	for _, name := range devices {
		base := filepath.Base(Dir("/s", name))
		if back, err := url.QueryUnescape(base); err != nil || back != name || strings.EqualFold(base, name) {
			t.Errorf("letters of %q go to %s, which is no directory on Windows", name, base)
		}
	}
	for _, name := range []string{"console", "com", "com10", "lpt", "comx", "a"} {
		if base := filepath.Base(Dir("/s", name)); base != name {
			t.Errorf("letters of %q go to %s", name, base)
		}
	}
	// Each name that the log takes fits a directory.
	for _, long := range []string{strings.Repeat("東", 27), strings.Repeat("a", queue.MaxNameBytes), strings.Repeat("A", 81)} {
		if err := queue.CheckName(long); err != nil {
			t.Error(err)
		}
		if err := os.MkdirAll(Dir(t.TempDir(), long), 0o700); err != nil {
			t.Errorf("letters of %q: %v", long, err)
		}
	}
}
