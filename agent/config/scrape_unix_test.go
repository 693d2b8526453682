//go:build unix

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScrapeConfigFilesUnknown: a configuration is wrong while the directory of scrape_config_files cannot be read; a
// reload would take them for removed. Files that do not exist are no mistake.
func TestScrapeConfigFilesUnknown(t *testing.T) {
	dir := t.TempDir()
	unreadable := filepath.Join(dir, "jobs")
	if err := os.Symlink(unreadable, unreadable); err != nil { // it leads to itself
		t.Fatal(err)
	}
	for pattern, wrong := range map[string]bool{"jobs/*.yaml": true, "jobs/a.yaml": true, "none/*.yaml": false, "none/a.yaml": false, "*.yml": false} {
		text := fmt.Sprintf("scrape_config_files: [%q]\nremote_write: [{url: 'http://127.0.0.1:9/'}]\n", pattern)
		_, warns, err := LoadBytes(filepath.Join(dir, "agent.yaml"), []byte(text), testEnv)
		switch {
		case wrong && (err == nil || !strings.Contains(err.Error(), "scrape_config_files[0]") || !strings.Contains(err.Error(), "symbolic links")):
			t.Errorf("%s: %v", pattern, err)
		case !wrong && (err != nil || len(warns) == 0 || !strings.Contains(fmt.Sprint(warns), "no file matches")):
			t.Errorf("%s: %v, warned %v", pattern, err, warns)
		}
	}
}
