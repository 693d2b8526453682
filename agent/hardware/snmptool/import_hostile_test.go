//go:build unix

package snmptool

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// acmeProfile is a profile that can be converted in part without MIBs.
const acmeProfile = `sysobjectid: 1.3.6.1.4.1.99999.7
metrics:
  - MIB: ACME-MIB
    table: {OID: 1.3.6.1.4.1.99999.1.1.1.9, name: acmeFanTable}
    symbols:
      - OID: 1.3.6.1.4.1.99999.1.1.1.9.1.2
        name: acmeFanState
        enum: {1: ok, 2: failed}
`

func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// TestImportIntoOddDirectories holds that an import writes through no link, waits for no pipe, and leaves the user's own files as
// they are.
func TestImportIntoOddDirectories(t *testing.T) {
	from := t.TempDir()
	put(t, from, "acme.yaml", acmeProfile)

	t.Run("a link in the place of a file that is being written", func(t *testing.T) {
		to, mine := t.TempDir(), put(t, t.TempDir(), "mine", "mine")
		if err := os.Symlink(mine, filepath.Join(to, "profile-acme.yaml.part")); err != nil {
			t.Fatal(err)
		}
		if _, err := Import(from, "", "", to); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(mine); err != nil || string(text) != "mine" {
			t.Errorf("the file that the link leads to is now %q, %v", text, err)
		}
	})
	t.Run("a pipe", func(t *testing.T) {
		to := t.TempDir()
		if err := syscall.Mkfifo(filepath.Join(to, "profile-pipe.yaml"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Import(from, "", "", to); err == nil || !strings.Contains(err.Error(), "profile-pipe.yaml") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a definition of the user's own that is broken", func(t *testing.T) {
		to := t.TempDir()
		put(t, to, "own.yaml", "definition: [")
		put(t, to, "profile-old.yaml", "# Made by hwsagent snmp import from old\n")
		if _, err := Import(from, "", "", to); err == nil {
			t.Error("no error")
		}
		if got := names(t, to); got != "own.yaml profile-acme.yaml" {
			t.Errorf("the directory has %s", got)
		}
	})
	t.Run("a directory in the place of a definition", func(t *testing.T) {
		to := t.TempDir()
		put(t, to, "profile-old.yaml", "# Made by hwsagent snmp import from old\n")
		put(t, to, "profile-acme.yaml/x", "")
		if _, err := Import(from, "", "", to); err == nil {
			t.Error("no error")
		}
		if got := names(t, to); got != "profile-acme.yaml profile-old.yaml" {
			t.Errorf("the directory has %s", got)
		}
	})
}

// TestImportOfOddProfiles checks that one odd file among many does not prevent the conversion of the others, and adds no
// content of its own to the output.
func TestImportOfOddProfiles(t *testing.T) {
	if testing.Short() {
		t.Skip("left out with -short: one goroutine, of which the race detector has nothing to say")
	}
	for name, files := range map[string]map[string]string{
		"a name that is too long":       {strings.Repeat("x", 245) + ".yaml": acmeProfile},
		"a circle":                      {"a.yaml": "extends: [b.yaml]\n" + acmeProfile, "b.yaml": "extends: [a.yaml]\n" + acmeProfile},
		"a base that is not valid":      {"a.yaml": "extends: [_b.yaml]\n" + acmeProfile, "_b.yaml": strings.Replace(acmeProfile, "metrics:", "selector: [{sysdescr: {include: ["+strings.Repeat("x", 300000)+"]}}]\nmetrics:", 1)},
		"a line break in a file's name": {"a\nvendor: Evil\n#.yaml": acmeProfile},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := t.TempDir(), t.TempDir()
			put(t, from, "acme.yaml", acmeProfile)
			for file, text := range files {
				put(t, from, file, text)
			}
			done, err := Import(from, "", "", to)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(strings.Fields(names(t, to))); got != done.Definitions {
				t.Errorf("%d definitions, and %d files", done.Definitions, got)
			}
			entries, _ := filepath.Glob(filepath.Join(to, "*"))
			for _, file := range entries {
				text, err := os.ReadFile(file)
				if err != nil || strings.Contains(string(text), "\nvendor: Evil") {
					t.Errorf("%s: %v\n%s", file, err, text)
				}
			}
			var told strings.Builder
			if err := done.Write(&told); err != nil || strings.Contains(told.String(), "\nvendor") {
				t.Errorf("%v: %s", err, told.String())
			}
		})
	}
}
