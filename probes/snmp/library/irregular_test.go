//go:build unix

package library

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLoadWaitsForNoPipe: an irregular file, also behind a link, is an error of the directory; links to files are followed, as
// Kubernetes creates them.
func TestLoadWaitsForNoPipe(t *testing.T) {
	const plain = "definition: plain\nvendor: Acme\n"
	for _, c := range []struct {
		name, want string
		make       func(file, elsewhere string) error
	}{
		{"pipe", "not a regular file", func(file, _ string) error { return syscall.Mkfifo(file, 0o600) }},
		{"link to a pipe", "not a regular file", func(file, elsewhere string) error {
			if err := syscall.Mkfifo(elsewhere, 0o600); err != nil {
				return err
			}
			return os.Symlink(elsewhere, file)
		}},
		{"link to a large file", "split it", func(file, elsewhere string) error {
			if err := os.WriteFile(elsewhere, make([]byte, maxFileBytes+1), 0o600); err != nil {
				return err
			}
			return os.Symlink(elsewhere, file)
		}},
		{"link to a file", "", func(file, elsewhere string) error {
			if err := os.WriteFile(elsewhere, []byte(plain), 0o600); err != nil {
				return err
			}
			return os.Symlink(elsewhere, file)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.make(filepath.Join(dir, "x.yaml"), filepath.Join(t.TempDir(), "elsewhere")); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { _, err := Load(dir); done <- err }()
			select {
			case err := <-done:
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("no end within 20 s")
			}
		})
	}
}
