package deadletter

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	// A directory's name has 255 bytes at most; names that differ only behind them do not meet.
	letters, dirs := strings.Repeat("東", 60), map[string]string{}
	for _, name := range []string{letters, letters + "a", letters + "b", strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("a", 255) + "."} {
		dir := Dir(t.TempDir(), name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Errorf("letters of %q: %v", name, err)
		}
		if other, ok := dirs[filepath.Base(dir)]; ok {
			t.Errorf("letters of %q and %q go to the same directory", name, other)
		}
		dirs[filepath.Base(dir)] = name
	}
}
