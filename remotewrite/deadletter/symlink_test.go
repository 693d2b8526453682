package deadletter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A store's directory, or one of its files, that is a symbolic link is refused, and nothing is made or cut where it leads:
// whoever may make links there could have the agent write elsewhere. So does a link to a file that does not exist.
func TestSymbolicLinksAreRefused(t *testing.T) {
	for _, name := range []string{"", current, previous, current + " that leads nowhere"} {
		t.Run("link="+name, func(t *testing.T) {
			elsewhere, dir := t.TempDir(), filepath.Join(t.TempDir(), "vm")
			at, to, file := dir, elsewhere, strings.TrimSuffix(name, " that leads nowhere")
			if name != "" {
				at, to = filepath.Join(dir, file), filepath.Join(elsewhere, "victim")
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if name == file && name != "" {
				if err := os.WriteFile(to, []byte("no line end"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(to, at); err != nil {
				t.Skipf("no symbolic links here: %v", err)
			}
			s, err := Open(dir, Options{})
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), at+" is a symbolic link") {
				t.Errorf("error %v", err)
			}
			if text, err := os.ReadFile(filepath.Join(elsewhere, "victim")); name == file && name != "" && string(text) != "no line end" {
				t.Errorf("the file that the link leads to has %q: %v", text, err)
			}
			if list, err := os.ReadDir(elsewhere); name != file || name == "" {
				if err != nil || len(list) > 0 {
					t.Errorf("made where the link leads: %v, %v", list, err)
				}
			}
		})
	}
}
