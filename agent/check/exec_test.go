package check

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestCheckCommand(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes of files mean something else there")
	}
	path := filepath.Join(t.TempDir(), "program")
	for _, tc := range []struct {
		mode os.FileMode // 0: no file
		want Result
	}{{0, Fail}, {0o644, Fail}, {0o757, Warn}, {0o755, OK}} {
		if tc.mode != 0 {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, tc.mode); err != nil {
				t.Fatal(err)
			}
		}
		if s := checkCommand("p", path); s.Result != tc.want || tc.want == Fail && !strings.Contains(s.Text, "probe p") {
			t.Errorf("%#o: %+v", tc.mode, s)
		}
	}
}
