package redact

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadFile: a secret is what people meant, without the traces of editors; what is no file, or too large, is refused.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	for text, want := range map[string]string{
		"abc": "abc", " abc\r\n\n": "abc", "\ufeffabc\r\n": "abc", "\ufeff\n": "", "a\ufeffb": "a\ufeffb", "one\ntwo\n": "one\ntwo",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadFile(file); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	if _, err := ReadFile(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := ReadFile(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.Truncate(file, maxSecretFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(file); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a large file: %v", err)
	}
}
